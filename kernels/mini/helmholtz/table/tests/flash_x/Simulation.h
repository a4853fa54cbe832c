! What Flash-X's set-up writes, as far as its equation of state needs it.
#define NSPECIES 2
#define EINT_VAR 1
