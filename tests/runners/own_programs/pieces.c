/* Maps memory in small pieces, each touched before the next, as an interpreter does: pieces PATTERN. Prints a sum.
 *   aligned    mapped with room to align them, the rest unmapped (Ruby)
 *   refused    the same, and huge pages refused for the process
 *   following  at the address behind the piece before (LuaJIT)
 *   committed  mapped at fixed addresses of a reservation (GHC)
 *   protected  parts of a reservation made accessible
 *   moved      one piece that grows (LuaJIT's tables)
 *   exact      at wished addresses of which none other is accepted; the sum counts those
 */
#define _GNU_SOURCE
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/prctl.h>
#include <unistd.h>

enum { BASE = 1 << 12, PIECE = 1 << 14, PART = 1 << 17, TOTAL = 48 << 20, FLAGS = MAP_PRIVATE | MAP_ANONYMOUS, ACCESS = PROT_READ | PROT_WRITE };

static char *must(void *got)
{
    if (got == MAP_FAILED) perror("mmap"), exit(4);
    return got;
}

/* The sum of what the piece held, which is 0, and of what is written. */
static long fill(char *piece, size_t bytes)
{
    long sum = 0;
    for (size_t at = 0; at < bytes; at += 512) {
        if (piece[at]) fputs("a new piece is not zero\n", stderr), exit(1);
        sum += piece[at] = (char)(1 + at % 7);
    }
    return sum;
}

static char *aligned(void)
{
    char *got = must(mmap(NULL, 2 * PIECE, ACCESS, FLAGS, -1, 0));
    char *place = got + PIECE - ((uintptr_t)got & (PIECE - 1));
    got[0] = place[PIECE - 1] = 0;
    if (place > got) munmap(got, (size_t)(place - got));
    if (place < got + PIECE) munmap(place + PIECE, (size_t)(got + PIECE - place));
    return place;
}

static long grow(void)
{
    char *piece = must(mmap(NULL, PART, ACCESS, FLAGS, -1, 0));
    long sum = fill(piece, PART);
    for (size_t bytes = PART, more; bytes < TOTAL; bytes = more) {
        more = 2 * bytes + BASE;
        piece = must(mremap(piece, bytes, more, MREMAP_MAYMOVE));
        sum += fill(piece + bytes, more - bytes);
    }
    return sum;
}

int main(int count, char **arguments)
{
    const char *pattern = count > 1 ? arguments[1] : "aligned";
    int is_aligned = !strcmp(pattern, "aligned") || !strcmp(pattern, "refused"), is_exact = !strcmp(pattern, "exact");
    int is_moved = !strcmp(pattern, "moved");
    size_t bytes = is_aligned ? PIECE : PART;
    long sum = 0;
    char *next = NULL;
    if (!strcmp(pattern, "refused") && prctl(PR_SET_THP_DISABLE, 1, 0, 0, 0)) return 4;
    if (strcmp(pattern, "following") && !is_moved && !is_aligned) next = must(mmap(NULL, TOTAL, PROT_NONE, FLAGS | MAP_NORESERVE, -1, 0));
    if (is_exact) munmap(next, TOTAL);
    if (is_moved) sum = grow();
    for (size_t at = 0; at < TOTAL && !is_moved; at += bytes) {
        char *piece = next;
        if (is_aligned) piece = aligned();
        else if (!strcmp(pattern, "committed")) must(mmap(next, bytes, ACCESS, FLAGS | MAP_FIXED, -1, 0));
        else if (!strcmp(pattern, "protected")) {
            if (mprotect(next, bytes, ACCESS)) return 4;
        } else piece = must(mmap(next, bytes, ACCESS, FLAGS, -1, 0));
        if (is_exact && piece != next) return fputs("another address\n", stderr), 1;
        sum += fill(piece, bytes);
        next = piece + bytes;
    }
    usleep(100000);
    printf("%ld\n", sum);
    return 0;
}
