/* For test_operands.py: the decoders of kernels/model/operands.h as functions. */
#include "../../kernels/model/operands.h"

struct pw_instruction decode(int is_x86, const uint8_t *code, const uint64_t *registers);
uint64_t awaited(int is_x86, const uint8_t *code, const uint64_t *registers, int faulting);

struct pw_instruction decode(int is_x86, const uint8_t *code, const uint64_t *registers)
{
    return is_x86 ? pw_x86_64(code, registers, false) : pw_aarch64(code, registers, false);
}

uint64_t awaited(int is_x86, const uint8_t *code, const uint64_t *registers, int faulting)
{
    return pw_awaited(code, registers, is_x86 != 0, faulting != 0);
}
