/* The search in the table of separate arrays. */
#ifndef PW_HELMHOLTZ_ROWS_ARRAYS_SEARCH_H
#define PW_HELMHOLTZ_ROWS_ARRAYS_SEARCH_H

/* From a complete evaluation at the step's temperature. */
INLINE void density_sums(table_t *table, struct search *s, int64_t i, int mode, v4 cell, v4 part, v4 *sums)
{
    struct place *place = s->cells.place;
    struct orders of;
    v4 cell_u;
    for (int l = 0; l < lanes; l++) {
        const int64_t column = place->cold[i + l] / 3;
        cell_u[l] = (double)column;
    }
    store_integers(place->cell + i, first_node(table, cell_u, cell));
    store(place->part_v + i, part);
    interpolate(table, place, s->cells.few, i, &s->cells.electrons, &of);
    for (int k = 0; k < 6; k++) {
        sums[k] = of.value[k];
        if (mode == PW_HELMHOLTZ_PRESSURE) sums[6 + k] = of.first[k];
    }
}

/* Find the temperatures of the chunk's zones, group by group; `wrong`: (chunk) the faults of the zones. */
INLINE void search(table_t *table, struct search *s, int64_t n, int mode, const int64_t *next_cells, int few, double *temp,
                   double *wrong)
{
    s->cells.few = few;
    for (int64_t i = 0; i < n; i += lanes) {
        m4 done = (m4)splat(0.0);
        if (next_cells)
            for (int l = 0; l < lanes; l++) prefetch(table, next_cells[i + l], few);
        for (int iteration = 0; iteration <= most_iterations && any(~done); iteration++) {
            /* A zone that is finished before others of its group stays as it is. */
            v4 v = load(s->v + i), fault = load(s->wrong + i);
            m4 now = search_step(table, s, i, mode, iteration > 25);
            store(s->v + i, choose(done, v, load(s->v + i)));
            store(s->wrong + i, choose(done, fault, load(s->wrong + i)));
            done |= now;
        }
        store(temp + i, exponential(load(s->v + i)));
        store(wrong + i, choose(done, load(s->wrong + i), splat(PW_HELMHOLTZ_NOT_FOUND)));
    }
}

#endif
