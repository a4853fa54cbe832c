/* The memory operand of the code near an interrupted instruction, and its address by the registers of that moment (x86-64, aarch64).

   A processor that waits for a load reports the instruction after it. So operands are sought backwards first. Enough for statistics:
   of gathers, and of loads that have replaced their index, the base alone; of a load that has replaced its base, what
   computed this base shortly before (x86-64), else what it points to, as in a list; nothing of thread-local memory, and nothing that only
   the opcode names, except strings of x86-64. */
#ifndef PAGEWISE_OPERANDS_H
#define PAGEWISE_OPERANDS_H

#include <stdbool.h>
#include <stdint.h>
#include <string.h>

/* Instead of an address: the code accesses no memory; the kernel worked for the program. */
enum { PW_NO_OPERAND, PW_IN_KERNEL };

enum { PW_CODE_PAGE = 4096, PW_LONGEST = 16 /* bytes of an instruction */, PW_NEAR = 4, PW_SEEN = 8 /* instructions */ };

/* An instruction: `length` in bytes; whether it accesses memory, and at which address. Of x86-64: the last byte of its opcode, and the
   registers of its ModR/M byte (PW_NO_REGISTER: memory): the first, the second or the base. */
enum { PW_NO_REGISTER = 16, PW_RED_ZONE = 128, PW_LARGEST_FRAME = 1 << 16 /* bytes */ };
struct pw_instruction {
    unsigned length;
    bool accesses;
    uint64_t address;
    uint8_t opcode, first, second, base;
};

/* The operands of each opcode, 16 in a line, without and after 0F. m: ModR/M; l: ModR/M without an access; B, Z: ModR/M, and 1 or
   4 bytes; b, w, e, z: 1, 2, 3, 4 bytes; q: 4, or 8 with REX.W; o: 8; d, s: strings at RDI, at RSI; T, U: B, Z for the first two of
   eight operations, else m; -: none. Source: Intel 64 and IA-32 Architectures Software Developer's Manual, volume 2, appendix A. */
static const char pw_opcodes[2][257] = {"mmmmbz--mmmmbz--"
                                        "mmmmbz--mmmmbz--"
                                        "mmmmbz--mmmmbz--"
                                        "mmmmbz--mmmmbz--"
                                        "----------------"
                                        "----------------"
                                        "---m----zZbB----"
                                        "bbbbbbbbbbbbbbbb"
                                        "BZBBmmmmmmmmmlmm"
                                        "----------------"
                                        "oooosdddbzddssdd"
                                        "bbbbbbbbqqqqqqqq"
                                        "BBw---BZe-w--b--"
                                        "mmmm----mmmmmmmm"
                                        "bbbbbbbbzz-b----"
                                        "------TU------mm",
                                        "mmmm---------l--"
                                        "mmmmmmmmllllllll"
                                        "mmmm----mmmmmmmm"
                                        "----------------"
                                        "mmmmmmmmmmmmmmmm"
                                        "mmmmmmmmmmmmmmmm"
                                        "mmmmmmmmmmmmmmmm"
                                        "BBBBmmm-mmmmmmmm"
                                        "zzzzzzzzzzzzzzzz"
                                        "mmmmmmmmmmmmmmmm"
                                        "---mBm-----mBmmm"
                                        "mmmmmmmmmmBmmmmm"
                                        "mmBmBBBm--------"
                                        "mmmmmmmmmmmmmmmm"
                                        "mmmmmmmmmmmmmmmm"
                                        "mmmmmmmmmmmmmmmm"};

/* What precedes an opcode. short_values: of 2 instead of 4 bytes; wide: REX.W; vector: VEX or EVEX. */
struct pw_prefixes {
    bool short_values, wide, vector, thread_local;
    unsigned map;                /* of opcodes: 0, or 1 to 3 after 0F, 0F 38, 0F 3A, or another of EVEX */
    unsigned first, index, base; /* the fourth bit of their registers' numbers */
    int unit;                    /* of displacements of one byte */
};

/* Returns where the opcode is. */
static const uint8_t *pw_prefixes_of(const uint8_t *at, struct pw_prefixes *prefixes)
{
    static const char legacy[] = "\x66\x67\xf2\xf3\xf0\x2e\x36\x3e\x26\x64\x65";
    *prefixes = (struct pw_prefixes){.unit = 1};
    for (int i = 0; i < 14 && *at != 0 && strchr(legacy, *at) != NULL; i++, at++) {
        prefixes->short_values |= *at == 0x66;
        prefixes->thread_local |= *at == 0x64 || *at == 0x65;
    }
    prefixes->vector = *at == 0xc5 || *at == 0xc4 || *at == 0x62;
    if (*at == 0xc5) {
        prefixes->map = 1;
        return at + 2;
    }
    if (*at == 0xc4 || *at == 0x62) {
        prefixes->map = at[1] & (*at == 0x62 ? 7U : 31U);
        prefixes->first = (at[1] & 0x80) != 0 ? 0 : 8;
        prefixes->index = (at[1] & 0x40) != 0 ? 0 : 8;
        prefixes->base = (at[1] & 0x20) != 0 ? 0 : 8;
        if (*at == 0xc4) return at + 3;
        prefixes->unit = 16 << (at[3] >> 5 & 3); /* of whole vectors */
        return at + 4;
    }
    if ((*at & 0xf0) == 0x40) {
        prefixes->wide = (*at & 8) != 0;
        prefixes->first = (*at & 4U) << 1;
        prefixes->index = (*at & 2U) << 2;
        prefixes->base = (*at & 1U) << 3;
        at++;
    }
    if (*at != 0x0f) return at;
    prefixes->map = at[1] == 0x38 ? 2 : at[1] == 0x3a ? 3 : 1;
    return at + (prefixes->map == 1 ? 1 : 2);
}

/* The 4 bytes at a place as a signed number, modulo 2^64. */
static uint64_t pw_number_at(const uint8_t *at)
{
    int32_t number;
    memcpy(&number, at, sizeof number);
    return (uint64_t)(int64_t)number;
}

/* The operand that the ModR/M byte at a place names; no_index: its index is a vector; is_done: the instruction may have replaced it.
   Returns what follows. */
static const uint8_t *pw_modrm(const uint8_t *at, const struct pw_prefixes *prefixes, bool no_index, bool is_done,
                               const uint64_t *registers, struct pw_instruction *result, bool *relative)
{
    const unsigned mode = *at >> 6, first = (*at >> 3 & 7U) | prefixes->first, place = *at & 7;
    unsigned base = place;
    at++;
    result->first = (uint8_t)first;
    result->second = mode == 3 ? (uint8_t)(place | prefixes->base) : PW_NO_REGISTER;
    if (mode == 3) return at;
    result->accesses = !prefixes->thread_local;
    if (place == 4) {
        const unsigned index = (*at >> 3 & 7U) | prefixes->index;
        base = *at & 7;
        if (index != 4 && !no_index && !(is_done && index == first)) result->address = registers[index] << (*at >> 6);
        at++;
    }
    if (mode == 0 && base == 5) {
        *relative = place == 5;
        result->address += pw_number_at(at);
        return at + 4;
    }
    result->base = (uint8_t)(base | prefixes->base);
    result->address += registers[result->base];
    if (mode == 1) result->address += (uint64_t)((int64_t)(int8_t)*at * prefixes->unit);
    if (mode == 2) result->address += pw_number_at(at);
    return at + (mode == 1 ? 1 : mode == 2 ? 4 : 0);
}

/* The instruction of x86-64 at `code`. registers: [16] by the numbers of the instruction set, before it or when it is done. */
static struct pw_instruction pw_x86_64(const uint8_t *code, const uint64_t *registers, bool is_done)
{
    struct pw_prefixes prefixes;
    struct pw_instruction result = {.first = PW_NO_REGISTER, .second = PW_NO_REGISTER, .base = PW_NO_REGISTER};
    bool relative = false;
    const uint8_t *at = pw_prefixes_of(code, &prefixes);
    const uint8_t opcode = *at++;
    result.opcode = prefixes.map == 0 ? opcode : 0;
    int operands = prefixes.map == 3 ? 'B' : prefixes.map > 1 ? 'm' : pw_opcodes[prefixes.map][opcode];
    if (operands == 'T' || operands == 'U') operands = (*at >> 3 & 7) > 1 ? 'm' : operands == 'T' ? 'B' : 'Z';
    const bool names_vectors = (opcode & 0xfc) == 0x90 || (opcode & 0xfc) == 0xa0 || (opcode & 0xfe) == 0xc6;
    const bool gathers = prefixes.vector && prefixes.map == 2 && names_vectors;
    if (strchr("mlBZ", operands) != NULL) at = pw_modrm(at, &prefixes, gathers, is_done, registers, &result, &relative);
    if (operands == 'l') result.accesses = false;
    if (operands == 'd' || operands == 's') {
        result.accesses = true;
        result.address = registers[operands == 'd' ? 7 : 6];
    }
    if (operands == 'b' || operands == 'B') at += 1;
    if (operands == 'w') at += 2;
    if (operands == 'e') at += 3;
    if (operands == 'o' || (operands == 'q' && prefixes.wide)) at += 8;
    if (operands == 'z' || operands == 'Z' || (operands == 'q' && !prefixes.wide)) at += prefixes.short_values ? 2 : 4;
    result.length = (unsigned)(at - code);
    if (relative) result.address += (uint64_t)(uintptr_t)at;
    return result;
}

/* The signed number in `bits` bits of an instruction, from `first` on. */
static int64_t pw_field(uint32_t code, unsigned first, unsigned bits)
{
    return (int64_t)((uint64_t)code << (64 - first - bits)) >> (64 - bits);
}

/* The instruction of aarch64 at `code`. registers: [32], the last is the stack pointer. Source: Arm ARM for A-profile (DDI 0487),
   C4.1.94, Loads and Stores, and C4.1, SVE encodings. */
static struct pw_instruction pw_aarch64(const uint8_t *at, const uint64_t *registers, bool is_done)
{
    uint32_t code;
    memcpy(&code, at, sizeof code);
    const unsigned vector = code >> 26 & 1, size = code >> 30;
    struct pw_instruction result = {.length = sizeof code, .accesses = true, .address = registers[code >> 5 & 31]};
    if ((code & UINT32_C(0x9e000000)) == UINT32_C(0x84000000)) return result; /* SVE */
    result.accesses = (code & UINT32_C(0x0a000000)) == UINT32_C(0x08000000) && (code & UINT32_C(0xfec00000)) != UINT32_C(0xf8800000);
    if ((code & UINT32_C(0x3b000000)) == UINT32_C(0x18000000)) {
        result.address = (uint64_t)(uintptr_t)at + (uint64_t)(pw_field(code, 5, 19) * 4);
    } else if ((code & UINT32_C(0x3b000000)) == UINT32_C(0x39000000)) {
        result.address += (uint64_t)(code >> 10 & 0xfff) << (vector != 0 && (code >> 23 & 1) != 0 && size == 0 ? 4 : size);
    } else if ((code & UINT32_C(0x3b200c00)) == UINT32_C(0x38200800)) {
        const unsigned index = code >> 16 & 31;
        uint64_t offset = index == 31 || (is_done && vector == 0 && index == (code & 31)) ? 0 : registers[index];
        if ((code >> 13 & 7) == 2) offset = (uint32_t)offset;
        if ((code >> 13 & 7) == 6) offset = (uint64_t)(int64_t)(int32_t)offset;
        const unsigned shift = vector != 0 && (code >> 23 & 1) != 0 && size == 0 ? 4 : size;
        result.address += (code >> 12 & 1) != 0 ? offset << shift : offset;
    } else if ((code & UINT32_C(0x3b200000)) == UINT32_C(0x38000000)) {
        if ((code >> 10 & 3) != 1) result.address += (uint64_t)pw_field(code, 12, 9);
    } else if ((code & UINT32_C(0x3a000000)) == UINT32_C(0x28000000)) {
        const unsigned shift = vector != 0 ? 2 + size : 2 + (size >> 1);
        if ((code >> 23 & 3) != 1) result.address += (uint64_t)(pw_field(code, 15, 7) * (INT64_C(1) << shift));
    }
    return result;
}

/* The instructions that end where `here` begins, the nearest last: at most PW_SEEN. Those of x86-64 have no mark of their begin: decoded
   from a place in the middle of one, they soon coincide with the real ones. Nothing in other pages is read. Returns their number. */
static int pw_before(const uint8_t *here, const uint64_t *registers, bool is_x86, struct pw_instruction before[PW_SEEN])
{
    const unsigned most = is_x86 ? 48 : 4 * PW_NEAR, in_page = (unsigned)((uintptr_t)here % PW_CODE_PAGE);
    if (in_page > PW_CODE_PAGE - PW_LONGEST) return 0;
    for (unsigned start = in_page < most ? in_page : most; start > 0; start--) {
        int n = 0;
        const uint8_t *at = here - start;
        while (at < here) {
            const struct pw_instruction result = is_x86 ? pw_x86_64(at, registers, true) : pw_aarch64(at, registers, true);
            if (n == PW_SEEN) memmove(before, before + 1, (size_t)--n * sizeof *before);
            before[n++] = result;
            at += result.length;
        }
        if (at == here) return n;
    }
    return 0;
}

/* What the last of `n` instructions of x86-64 accessed, if it has replaced its base: as the instructions before computed that. */
static uint64_t pw_replaced(const struct pw_instruction *before, int n, const uint64_t *registers)
{
    enum { add_to = 0x01, add = 0x03, widen = 0x63, move_to = 0x89, move = 0x8b, compute = 0x8d, call = 0xe8, call_at = 0xff };
    const struct pw_instruction *load = &before[n - 1];
    const unsigned base = load->base;
    /* What can be read: the page of the stack pointer, with what is below it by the ABI, to that of a frame pointer. */
    const uint64_t stack = registers[4], frame = registers[5] - stack < PW_LARGEST_FRAME ? registers[5] : stack;
    const uint64_t first_page = (stack - PW_RED_ZONE) / PW_CODE_PAGE, last_page = frame / PW_CODE_PAGE;
    uint64_t offset = load->address - registers[base];
    if (base != load->first || (load->opcode != move && load->opcode != widen)) return load->address;
    for (const struct pw_instruction *at = load; at-- > before;) {
        const bool from_other = at->first == base && at->second != base, to_it = at->second == base && at->first != base;
        if (at->opcode == call || at->opcode == call_at) break;
        if (from_other && at->opcode == compute && at->base != base) return offset + at->address;
        if (from_other && at->opcode == add && at->second != PW_NO_REGISTER) offset += registers[at->second];
        if (from_other && at->opcode == move && at->second != PW_NO_REGISTER) return offset + registers[at->second];
        if (from_other && at->opcode == move) {
            uint64_t value; /* a local variable */
            if (at->base == base || at->address / PW_CODE_PAGE < first_page || (at->address + sizeof value - 1) / PW_CODE_PAGE > last_page)
                break;
            memcpy(&value, (const void *)(uintptr_t)at->address, sizeof value);
            return offset + value;
        }
        if (to_it && at->opcode == add_to) offset += registers[at->first];
        if (to_it && at->opcode == move_to) return offset + registers[at->first];
    }
    return load->address;
}

/* The address that the code at `here` waits for, PW_NO_OPERAND, or PW_IN_KERNEL. faulting: for its page. */
static uint64_t pw_awaited(const uint8_t *here, const uint64_t *registers, bool is_x86, bool faulting)
{
    static const uint8_t call[] = {0x0f, 0x05}, call_of_arm[] = {0x01, 0x00, 0x00, 0xd4};
    struct pw_instruction before[PW_SEEN], next = is_x86 ? pw_x86_64(here, registers, false) : pw_aarch64(here, registers, false);
    if (faulting && next.accesses) return next.address;
    const int n = pw_before(here, registers, is_x86, before);
    const uint8_t *of_call = is_x86 ? call : call_of_arm;
    const size_t length = is_x86 ? sizeof call : sizeof call_of_arm;
    if (n > 0 && memcmp(here - length, of_call, length) == 0) return PW_IN_KERNEL;
    for (int i = n; i > 0 && i > n - PW_NEAR; i--)
        if (before[i - 1].accesses) return is_x86 ? pw_replaced(before, i, registers) : before[i - 1].address;
    for (int i = 0; i < PW_NEAR && !next.accesses && (uintptr_t)here % PW_CODE_PAGE < PW_CODE_PAGE - 2 * PW_LONGEST; i++) {
        here += next.length;
        next = is_x86 ? pw_x86_64(here, registers, false) : pw_aarch64(here, registers, false);
    }
    return next.accesses ? next.address : PW_NO_OPERAND;
}

#endif
