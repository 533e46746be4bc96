/* Checks uncompressed records of one batch: the accelerator of record_check.py, which has the same rules in Python.
 *
 * An installation without a C compiler has no such module, and everything works as with it (plain_records.py).
 *
 * Invariants:
 * - It accepts a record only if RecordCheck does. What it does not accept may be valid: RecordCheck decides, and makes
 *   the error. So a client gets the same answer with and without this module (tests/wire/batches/test_valid_records.py).
 * - Every byte is read in read_varint, which compares the position with an end: nothing is read outside the buffer.
 * - It allocates nothing but its result, keeps nothing between calls, and reads each byte at most once.
 * - The lock of the interpreter is kept: callers limit the bytes, so a call lasts microseconds (2.7 ms for the worst
 *   MB, all empty headers), and to get the lock back would take up to 5 ms if another thread computes.
 *
 * The limited API of Python 3.11: one binary serves all later versions.
 */
#define Py_LIMITED_API 0x030b0000
#define PY_SSIZE_T_CLEAN
#include <Python.h>
#include <stdint.h>

#define MOST_HEADERS 500 /* of a record, as MAX_HEADERS_OF_A_STEP: RecordCheck reads more of them in steps */

typedef struct {
    const unsigned char *data;
    Py_ssize_t pos;
    Py_ssize_t end;
} Reader;

typedef struct {
    int64_t base_timestamp;
    int64_t earliest;
    int64_t latest;
    int64_t max_record_size;
    int needs_keys;
} Limits;

/* A varint, in zig-zag form; bits above 64 are dropped. 0 if it has more than max_bytes bytes or is not all there. */
static inline int
read_varint(Reader *reader, int max_bytes, uint64_t *number)
{
    uint64_t value = 0;
    for (int shift = 0; shift < 7 * max_bytes; shift += 7) {
        if (reader->pos >= reader->end) {
            return 0;
        }
        unsigned char byte = reader->data[reader->pos++];
        value |= (uint64_t)(byte & 0x7F) << shift;
        if (byte < 0x80) {
            *number = value;
            return 1;
        }
    }
    return 0;
}

/* A number of 32 bits: bits above are dropped, as in Kafka's ByteUtils. */
static inline int
read_number(Reader *reader, uint32_t *number)
{
    uint64_t value;
    if (!read_varint(reader, 5, &value)) {
        return 0;
    }
    *number = (uint32_t)value;
    return 1;
}

/* Skip a field with its length; a negative length is null. */
static inline int
skip_field(Reader *reader, int is_nullable)
{
    uint32_t length;
    if (!read_number(reader, &length)) {
        return 0;
    }
    if (length & 1) {
        return is_nullable;
    }
    if ((Py_ssize_t)(length >> 1) > reader->end - reader->pos) {
        return 0;
    }
    reader->pos += length >> 1;
    return 1;
}

static inline int
is_timestamp_valid(uint64_t delta, const Limits *limits)
{
    int64_t base = limits->base_timestamp;
    int64_t number = (int64_t)(delta >> 1) ^ -(int64_t)(delta & 1);
    if (number > 0 ? base > INT64_MAX - number : base < INT64_MIN - number) {
        return 0; /* no 64-bit number */
    }
    int64_t timestamp = base + number;
    return timestamp == -1 || (limits->earliest <= timestamp && timestamp <= limits->latest);
}

/* Whether a valid record with this offset delta is at the position; if so, the position is behind it. */
static int
skip_valid_record(Reader *reader, uint32_t index, const Limits *limits)
{
    uint32_t length, number;
    uint64_t delta;
    if (!read_number(reader, &length) || length & 1) {
        return 0;
    }
    if ((Py_ssize_t)(length >> 1) > reader->end - reader->pos || (int64_t)(length >> 1) > limits->max_record_size) {
        return 0;
    }
    Reader fields = {reader->data, reader->pos + 1, reader->pos + (length >> 1)}; /* the first byte: attributes */
    if (!read_varint(&fields, 10, &delta) || !is_timestamp_valid(delta, limits)) {
        return 0;
    }
    if (!read_number(&fields, &number) || number != index << 1) {
        return 0;
    }
    if (!skip_field(&fields, !limits->needs_keys) || !skip_field(&fields, 1)) {
        return 0;
    }
    if (!read_number(&fields, &number) || number & 1 || number >> 1 > MOST_HEADERS) {
        return 0;
    }
    for (number >>= 1; number; number--) {
        if (!skip_field(&fields, 0) || !skip_field(&fields, 1)) {
            return 0;
        }
    }
    if (fields.pos != fields.end) {
        return 0;
    }
    reader->pos = fields.end;
    return 1;
}

/* A Python int as a 64-bit number, the nearest one if it has more bits. */
static int
as_int64(PyObject *object, int64_t *number)
{
    int overflow;
    long long value = PyLong_AsLongLongAndOverflow(object, &overflow);
    *number = overflow > 0 ? INT64_MAX : overflow < 0 ? INT64_MIN : (int64_t)value;
    return !PyErr_Occurred();
}

static PyObject *
valid_records(PyObject *module, PyObject *const *args, Py_ssize_t count)
{
    (void)module;
    int64_t pos, index, last;
    Limits limits;
    Py_buffer buffer;
    if (count != 9) {
        PyErr_SetString(PyExc_TypeError, "valid_records() takes 9 arguments");
        return NULL;
    }
    if (!as_int64(args[1], &pos) || !as_int64(args[2], &index) || !as_int64(args[3], &last) ||
        !as_int64(args[4], &limits.base_timestamp) || !as_int64(args[5], &limits.earliest) ||
        !as_int64(args[6], &limits.latest) || !as_int64(args[8], &limits.max_record_size)) {
        return NULL;
    }
    limits.needs_keys = PyObject_IsTrue(args[7]);
    if (limits.needs_keys < 0 || PyObject_GetBuffer(args[0], &buffer, PyBUF_SIMPLE) < 0) {
        return NULL;
    }
    if (pos < 0 || pos > buffer.len || index < 0 || last > INT32_MAX) {
        PyBuffer_Release(&buffer);
        PyErr_SetString(PyExc_ValueError, "valid_records(): a position or an index is out of range");
        return NULL;
    }
    Reader reader = {buffer.buf, (Py_ssize_t)pos, buffer.len};
    while (index < last) {
        Reader record = reader;
        if (!skip_valid_record(&record, (uint32_t)index, &limits)) {
            break;
        }
        reader.pos = record.pos;
        index++;
    }
    PyBuffer_Release(&buffer);
    return Py_BuildValue("(nL)", reader.pos, (long long)index);
}

static PyMethodDef methods[] = {
    {"valid_records", (PyCFunction)(void (*)(void))valid_records, METH_FASTCALL,
     "valid_records(data, pos, index, last, base_timestamp, earliest, latest, needs_keys, max_record_size, /)\n--\n\n"
     "Where the valid records from `pos` on end, and the index of the record there, which is `last` at most."},
    {NULL, NULL, 0, NULL},
};

static struct PyModuleDef definition = {
    PyModuleDef_HEAD_INIT, "_valid_records", NULL, 0, methods, NULL, NULL, NULL, NULL,
};

PyMODINIT_FUNC
PyInit__valid_records(void)
{
    return PyModuleDef_Init(&definition);
}
