/* For programs that take many seconds: handle interrupts, and detect a terminal. */
#ifndef PW_TERMINAL_H
#define PW_TERMINAL_H

#include <stdint.h>

/* From now on record the signals that request termination (hang-up, interrupt, termination) instead of ending at once. A
   signal that was ignored before stays ignored. */
void pw_terminal_watch(void);

/* The first signal received; 0 if none. */
int32_t pw_terminal_signal(void);

/* End by that signal, as if it had not been recorded. */
void pw_terminal_end(void);

/* Whether standard error is a terminal. */
int32_t pw_terminal_seen(void);

#endif
