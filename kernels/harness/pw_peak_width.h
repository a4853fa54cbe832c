/* The loop of pw_peak.h over vectors of one type and width. */
#define PW_PEAK_TAKE(u, unused) PW_OWN(vector) x##u = PW_OWN(load)(x + i + u * lanes);
#define PW_PEAK_STEP(u, unused) x##u = PW_OWN(fma)(x##u, factor, summand);
#define PW_PEAK_OPAQUE(u, unused) x##u = PW_OWN(hide)(x##u);
#define PW_PEAK_PUT(u, unused) PW_OWN(store)(x + i + u * lanes, x##u);

static PW_TARGET int32_t PW_OWN(peak)(struct pw_peak_call *call)
{
    PW_T *x = call->x;
    const int64_t lanes = PW_OWN(lanes)();
    const int64_t group = pw_group * lanes;
    const PW_OWN(vector) factor = PW_OWN(broadcast)((PW_T)call->factor);
    PW_T by = (PW_T)call->summand;
    for (int64_t pass = 0; pass < call->passes; pass++) {
        const PW_OWN(vector) summand = PW_OWN(broadcast)(by);
        for (int64_t i = 0; i + group <= call->elements; i += group) {
            PW_GROUP(PW_PEAK_TAKE, )
            /* Opaque at intervals: the compiler neither vectorises the values in registers, if scalars are requested, nor
             * computes them differently. */
            for (int step = 0; step < PW_PEAK_STEPS; step += 4) {
                PW_GROUP(PW_PEAK_STEP, )
                PW_GROUP(PW_PEAK_STEP, )
                PW_GROUP(PW_PEAK_STEP, )
                PW_GROUP(PW_PEAK_STEP, )
                PW_GROUP(PW_PEAK_OPAQUE, )
            }
            PW_GROUP(PW_PEAK_PUT, )
        }
        by = -by;
    }
    return PW_PEAK_OK;
}

#undef PW_PEAK_TAKE
#undef PW_PEAK_STEP
#undef PW_PEAK_OPAQUE
#undef PW_PEAK_PUT
