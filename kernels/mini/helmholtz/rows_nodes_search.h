/* The search in the table of packed nodes. */
#ifndef PW_HELMHOLTZ_ROWS_NODES_SEARCH_H
#define PW_HELMHOLTZ_ROWS_NODES_SEARCH_H

enum { search_columns = sizeof(struct search) / (chunk * sizeof(double)) };

/* While a zone stays in its cell, its sums are kept. */
INLINE void density_sums(table_t *table, struct search *s, int64_t i, int mode, v4 cell, v4 part, v4 *sums)
{
    (void)part;
    if (any(cell != load(s->cells.cell_v + i))) {
        int64_t at[lanes];
        v4 weights[6];
        store_integers(at, (load(s->cells.column + i) + cell) * (double)node);
        for (int half = 0; half < (mode == PW_HELMHOLTZ_PRESSURE ? 2 : 1); half++) {
            for (int k = 0; k < 6; k++) weights[k] = load(s->cells.weights[6 * half + k] + i);
            over_density(table->thermal, at, node * table->temperatures, weights, sums + 6 * half);
            for (int k = 0; k < 6; k++) store(s->cells.sums[6 * half + k] + i, sums[6 * half + k]);
        }
        store(s->cells.cell_v + i, cell);
    }
    for (int k = 0; k < (mode == PW_HELMHOLTZ_PRESSURE ? 12 : 6); k++) sums[k] = load(s->cells.sums[k] + i);
}

/* Find the temperatures of the chunk's zones; `wrong`: (chunk) the faults of the zones. */
INLINE void search(table_t *table, struct search *s, int64_t n, int mode, const int64_t *next_cells, int few, double *temp,
                   double *wrong)
{
    int64_t left = n;
    for (int iteration = 0; left > 0; iteration++) {
        alignas(64) int64_t done[chunk];
        int64_t n_groups = (left + lanes - 1) / lanes;
        for (int64_t g = 0; g < n_groups; g++) {
            if (next_cells && iteration == 0)
                for (int l = 0; l < lanes; l++) prefetch(table, next_cells[lanes * g + l], few);
            *(m4 *)(done + lanes * g) = search_step(table, s, lanes * g, mode, iteration > 25);
        }
        /* Return the finished zones; the last unfinished ones replace them. */
        for (int64_t i = 0; i < left; i++) {
            /* NOLINTNEXTLINE(clang-analyzer-core.uninitialized.Branch): search_step fills done by vectors. */
            if (!done[i] && iteration < most_iterations) continue;
            int64_t zone = (int64_t)s->zone[i];
            temp[zone] = s->v[i];
            wrong[zone] = done[i] ? s->wrong[i] : (double)PW_HELMHOLTZ_NOT_FOUND;
            done[i] = -1;
        }
        for (int64_t i = 0; i < left; i++) {
            while (left > i && done[left - 1]) left--;
            if (left <= i || !done[i]) continue;
            left--;
            double *column = (double *)s;
            for (int k = 0; k < search_columns; k++, column += chunk) column[i] = column[left];
            done[i] = 0;
        }
    }
    for (int64_t i = 0; i < n; i += lanes) store(temp + i, exponential(load(temp + i)));
}

#endif
