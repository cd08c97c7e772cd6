/* Belief propagation on a bipartite binary machine, one image at a time, every iteration inside.
 *
 * Messages are odds: with T the belief odds of the sender and r the odds of the message that came back over the same
 * edge, the new message is (e^w T + r) / (T + r), and with max in place of + it is that of max-product. One message
 * costs one division. A row holds the edges of one visible unit; the messages into it, its belief, and the messages it
 * sends are done while the row is in the first-level cache, so that one array of messages per image is all the memory
 * there is. A few rows are done at once: a belief is the end of a chain of operations each of which waits for the last,
 * and the chains of several rows fill each other's gaps. Products of odds keep their exponents in integers: beliefs
 * have no range to overflow, and no logarithm is taken inside an iteration.
 *
 * The caller sees to |w| <= 30 and fields of at most 1e8. Belief odds are cut at 2^+-71, far above the odds of any
 * message: a message then is within e^-20 of what it would be without the cut.
 */
#include <math.h>
#include <stdint.h>
#include <string.h>

/* As the processor has them: compilers take wider vectors apart, and badly. */
#if defined __AVX512F__
#define LANES 16
#elif defined __AVX2__
#define LANES 8
#else
#define LANES 4
#endif
#define ROWS 4
#define LIMIT 71

/* Into each of its callers, so that the kind of messages is a constant in loops over them. */
#define INLINE static inline __attribute__((always_inline))

typedef float vec __attribute__((vector_size(4 * LANES)));
typedef int32_t ivec __attribute__((vector_size(4 * LANES)));

enum kind { SUM, MAX, MIXED };

/* mantissa * 2^exponent */
typedef struct {
    float mantissa;
    int32_t exponent;
} odds;

static inline vec all(float x) { return x - (vec){0}; }

/* Moves the exponents of positive numbers into `exponent`; what is left lies in [1, 2). */
static inline vec split(vec x, ivec *exponent) {
    ivec bits = (ivec)x;
    *exponent += (bits >> 23) - 127;
    return (vec)((bits & 0x007fffff) | 0x3f800000);
}

static inline odds split_one(float x, int32_t exponent) {
    int32_t bits;
    memcpy(&bits, &x, sizeof bits);
    odds out = {0, exponent + (bits >> 23) - 127};
    bits = (bits & 0x007fffff) | 0x3f800000;
    memcpy(&out.mantissa, &bits, sizeof bits);
    return out;
}

static inline odds times(odds a, odds b) { return split_one(a.mantissa * b.mantissa, a.exponent + b.exponent); }

/* As a float, cut to the range in which sums of messages and beliefs stay finite. */
static inline float cut(odds x) {
    int32_t exponent = x.exponent > LIMIT ? LIMIT : x.exponent < -LIMIT ? -LIMIT : x.exponent;
    int32_t bits = (exponent + 127) << 23;
    float power;
    memcpy(&power, &bits, sizeof power);
    return exponent == x.exponent ? x.mantissa * power : power;
}

static inline odds exp_of(float field) {
    double bits = field * 1.4426950408889634, whole = floor(bits);
    return (odds){exp2f((float)(bits - whole)), (int32_t)whole};
}

static inline odds product(vec x, ivec exponents) {
    x = split(x, &exponents);
    float m[LANES];
    int32_t e[LANES];
    memcpy(m, &x, sizeof m);
    memcpy(e, &exponents, sizeof e);
    for (int half = LANES / 2; half; half /= 2)
        for (int l = 0; l < half; l++) {
            m[l] *= m[l + half];
            e[l] += e[l + half];
        }
    return split_one(m[0], e[0]);
}

static inline double log_one_plus(odds x) {
    double log_odds = log(x.mantissa) + x.exponent * 0.69314718055994531;
    return log_odds > 30 ? log_odds : log1p(exp(log_odds));
}

static inline float mean_of(float belief) { return belief / (1 + belief); }

static inline vec join(vec a, vec b, enum kind kind) {
    if (kind != MAX) return a + b;
    ivec larger = a > b;
    return (vec)(((ivec)a & larger) | ((ivec)b & ~larger));
}

/* The messages from hidden units into a few visible ones, and the beliefs these come to. */
INLINE void gather(const vec *weights, const vec *beliefs, const vec *back, vec *messages, const odds *own, odds *sums,
                   int64_t blocks, int every, enum kind kind) {
    vec running[ROWS];
    ivec exponents[ROWS];
    for (int r = 0; r < ROWS; r++) {
        running[r] = all(1);
        exponents[r] = (ivec){0};
    }
    int left = every;
    for (int64_t j = 0; j < blocks; j++) {
        const vec belief = beliefs[j];
        for (int r = 0; r < ROWS; r++) {
            const int64_t edge = r * blocks + j;
            const vec message = join(weights[edge] * belief, back[edge], kind) / join(belief, back[edge], kind);
            messages[edge] = message;
            running[r] *= message;
        }
        if (--left == 0) {
            for (int r = 0; r < ROWS; r++) running[r] = split(running[r], &exponents[r]);
            left = every;
        }
    }
    for (int r = 0; r < ROWS; r++) sums[r] = times(own[r], product(running[r], exponents[r]));
}

/* The messages from these visible units back, and into the products of all that a hidden unit receives. */
INLINE void send(const vec *weights, const float *beliefs, const vec *messages, vec *back, vec *columns,
                 ivec *exponents, int64_t blocks, int every, enum kind kind) {
    for (int64_t j = 0; j < blocks; j++) {
        vec column = columns[j];
        ivec exponent = exponents[j];
        for (int r = 0; r < ROWS; r++) {
            const int64_t edge = r * blocks + j;
            const vec belief = all(beliefs[r]);
            vec message;
            if (kind == MIXED)
                message = beliefs[r] > 1 ? weights[edge] : all(1);
            else
                message = join(weights[edge] * belief, messages[edge], kind) / join(belief, messages[edge], kind);
            back[edge] = message;
            column *= message;
            /* The largest weights leave no room for a message of every row. */
            if (every < ROWS || r == ROWS - 1) column = split(column, &exponent);
        }
        columns[j] = column;
        exponents[j] = exponent;
    }
}

INLINE void solve(const vec *weights, const float *visible_fields, const float *hidden_fields, int64_t images,
                  int64_t visible, int64_t hidden, int max_iter, float tol, int every, float *work,
                  float *visible_means, float *hidden_means, float *pairs, double *log_partition,
                  int64_t *iterations, float *residuals, enum kind kind) {
    const int64_t blocks = hidden / LANES;
    vec *messages = (vec *)work, *beliefs = messages + visible * blocks, *incoming = beliefs + blocks;
    vec *columns = incoming + ROWS * blocks;
    ivec *column_exponents = (ivec *)(columns + blocks);
    odds *own_hidden = (odds *)(column_exponents + blocks), *sums = own_hidden + hidden, *own = sums + hidden;
    float *belief = (float *)beliefs;
    const float *column = (float *)columns;
    const int32_t *exponent = (int32_t *)column_exponents;
    for (int64_t image = 0; image < images; image++) {
        float *means = visible_means + image * visible, *answers = hidden_means + image * hidden;
        for (int64_t i = 0; i < visible; i++) {
            own[i] = exp_of(visible_fields[image * visible + i]);
            means[i] = mean_of(cut(own[i]));
        }
        for (int64_t j = 0; j < hidden; j++) {
            own_hidden[j] = exp_of(hidden_fields[image * hidden + j]);
            belief[j] = cut(own_hidden[j]);
            answers[j] = mean_of(belief[j]);
        }
        for (int64_t k = 0; k < visible * blocks; k++) messages[k] = all(1);

        int iteration = 0;
        float moved;
        do {
            iteration++;
            moved = 0;
            for (int64_t j = 0; j < blocks; j++) {
                columns[j] = all(1);
                column_exponents[j] = (ivec){0};
            }
            for (int64_t i = 0; i < visible; i += ROWS) {
                const vec *rows = weights + i * blocks;
                vec *back = messages + i * blocks;
                odds found[ROWS];
                float mine[ROWS];
                gather(rows, beliefs, back, incoming, own + i, found, blocks, every, kind);
                for (int r = 0; r < ROWS; r++) {
                    mine[r] = cut(found[r]);
                    float mean = mean_of(mine[r]), change = fabsf(mean - means[i + r]);
                    if (change > moved) moved = change;
                    means[i + r] = mean;
                }
                send(rows, mine, incoming, back, columns, column_exponents, blocks, every, kind);
            }
            for (int64_t j = 0; j < hidden; j++) {
                sums[j] = times(own_hidden[j], (odds){column[j], exponent[j]});
                belief[j] = cut(sums[j]);
                float mean = mean_of(belief[j]), change = fabsf(mean - answers[j]);
                if (change > moved) moved = change;
                answers[j] = mean;
            }
        } while (iteration < max_iter && moved > tol);
        iterations[image] = iteration;
        residuals[image] = moved;

        /* The visible beliefs answer the last hidden ones. With them pairs and log Z follow from messages of one
           direction: P(h = 1 | v = 1) has the odds e^w k of the cavity k = T / r, and
           log Z = sum log(1 + T_v) + sum log(1 + T_h) + sum over edges of log (1 + k) / (1 + T_h). */
        vec ratio = all(1);
        ivec ratio_exponents = {0};
        double total = 0;
        for (int64_t i = 0; i < visible; i++) {
            const vec *row = weights + i * blocks, *back = messages + i * blocks;
            /* A few at once, in the place of the fields, which have served. */
            if (i % ROWS == 0) gather(row, beliefs, back, incoming, own + i, own + i, blocks, every, kind);
            means[i] = mean_of(cut(own[i]));
            if (pairs) {
                vec *pair = (vec *)(pairs + i * hidden), mean = all(means[i]);
                for (int64_t j = 0; j < blocks; j++) {
                    vec both = row[j] * beliefs[j];
                    pair[j] += mean * (both / (both + back[j]));
                }
            }
            if (log_partition) {
                for (int64_t j = 0; j < blocks; j++) {
                    ratio *= (back[j] + beliefs[j]) / (back[j] * (1 + beliefs[j]));
                    ratio = split(ratio, &ratio_exponents);
                }
                total += log_one_plus(own[i]);
            }
        }
        if (log_partition) {
            for (int64_t j = 0; j < hidden; j++) total += log_one_plus(sums[j]);
            odds edges = product(ratio, ratio_exponents);
            log_partition[image] = total + log(edges.mantissa) + edges.exponent * 0.69314718055994531;
        }
    }
}

/* Beliefs, and what learning and the free energy need, of a batch of machines that differ in their fields only.
 *
 * Shapes: weights (visible, hidden) as e^w, visible a multiple of 4 and hidden of 16, padded by weights 1 and fields
 * far below 0; fields and means (images, units); pairs (visible, hidden), to which P(v = h = 1) is added, or NULL;
 * log_partition (images) or NULL. `every` products of messages may be taken before exponents must be moved. Weights,
 * work and pairs are aligned to 64 bytes; work holds visible * hidden + 2 * visible + 11 * hidden floats.
 */
void bp_solve(const float *weights, const float *visible_fields, const float *hidden_fields, int64_t images,
              int64_t visible, int64_t hidden, int kind, int max_iter, float tol, int every, float *work,
              float *visible_means, float *hidden_means, float *pairs, double *log_partition, int64_t *iterations,
              float *residuals) {
#define SOLVE(kind)                                                                                                  \
    solve((const vec *)weights, visible_fields, hidden_fields, images, visible, hidden, max_iter, tol, every, work,   \
          visible_means, hidden_means, pairs, log_partition, iterations, residuals, kind)
    if (kind == SUM)
        SOLVE(SUM);
    else if (kind == MAX)
        SOLVE(MAX);
    else
        SOLVE(MIXED);
}
