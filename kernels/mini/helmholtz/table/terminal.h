/* What a program of many seconds owes to whoever waits for it: it hears interrupts, and knows whether a person looks on. */
#ifndef PW_TERMINAL_H
#define PW_TERMINAL_H

#include <stdint.h>

/* From now on note the signals that ask to end (hang-up, interrupt, termination) instead of ending at once. One that was
   ignored before stays so. */
void pw_terminal_watch(void);

/* The signal that came first; 0 where none did. */
int32_t pw_terminal_signal(void);

/* End by that signal, as if it had not been noted. */
void pw_terminal_end(void);

/* Whether standard error is a terminal. */
int32_t pw_terminal_seen(void);

#endif
