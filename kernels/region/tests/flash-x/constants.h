/* Stand-in for the constants of Flash-X that its Profiler unit of pagewise uses. */
#define GLOBAL_COMM 546
#define MASTER_PE 0
