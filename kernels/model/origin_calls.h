/* How the preloaded library (preload.c) reports memory to the plug-in (origins.c): by a call of prctl that no Linux knows,

       prctl(PW_ORIGIN_CALL, event | frames << 8, address, bytes, return addresses)

   Without the plug-in the call fails with EINVAL and has no effect. */
#ifndef PAGEWISE_ORIGIN_CALLS_H
#define PAGEWISE_ORIGIN_CALLS_H

enum { PW_ORIGIN_CALL = 0x70770001, PW_ORIGIN_FRAMES = 14 };

enum pw_origin_event {
    PW_ORIGIN_HELLO,   /* address: of an int, which the plug-in sets to 1; bytes: begin, and frames: end of the library's code */
    PW_ORIGIN_BEGIN,   /* memory begins to belong to the site of these frames */
    PW_ORIGIN_RESERVE, /* address space that cannot be accessed yet begins to */
    PW_ORIGIN_END,     /* it was freed */
    PW_ORIGIN_PAUSE,   /* what follows is the library's work and not the program's */
    PW_ORIGIN_RESUME
};

#endif
