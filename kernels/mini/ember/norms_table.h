/* The committed norms of states, compiled into the program. */
#ifndef EMBER_NORMS_TABLE_H
#define EMBER_NORMS_TABLE_H

/* Row i of norms.txt, counted from 0; NULL beyond the last. */
const char *pw_ember_norms_row(int i);

#endif
