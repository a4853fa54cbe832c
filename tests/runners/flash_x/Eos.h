! Indices of the equation of state.
#define EOS_VARS 10
#define EOS_DPD 12
#define EOS_NUM 24
