! Those constants of Flash-X that its simulations need.
#define MDIM 3
#define IAXIS 1
#define JAXIS 2
#define KAXIS 3
#define LOW 1
#define HIGH 2
#define CENTER 253
#define MODE_DENS_TEMP 101
#define PI 3.1415926535897932384
