! The header of Flash-X for a 2-d simulation with carbon and oxygen, as its set-up writes it.
#define NDIM 2
#define DENS_VAR 1
#define TEMP_VAR 2
#define PRES_VAR 3
#define EINT_VAR 4
#define ENER_VAR 5
#define GAMC_VAR 6
#define GAME_VAR 7
#define VELX_VAR 8
#define VELY_VAR 9
#define VELZ_VAR 10
#define C12_SPEC 11
#define O16_SPEC 12
#define SPECIES_BEGIN 11
#define SPECIES_END 12
#define NSPECIES 2
#define NUNK_VARS 12
