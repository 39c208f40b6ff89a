/* A small JSON reader: enough for a ModelConfig and for engine.json, strict enough to refuse anything else.
 *
 * Nodes are numbered; -1 is "not there" and every function accepts it. The text must outlive the document.
 */
#ifndef TRITONCHAOS_JSON_H
#define TRITONCHAOS_JSON_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

enum json_kind { JSON_OBJECT, JSON_ARRAY, JSON_KEY, JSON_STRING, JSON_NUMBER, JSON_WORD };

struct json_node {
    enum json_kind kind;
    size_t start, end; /* the text of a key, string (without quotes), number or word */
    int child;         /* first element, first key, or the value of a key */
    int next;          /* next element or key of the same parent */
};

struct json {
    const char *text;
    size_t length, at;
    struct json_node *nodes;
    int count, capacity;
};

/* Read a whole document; node 0 is its root. Free it afterwards, also when this returned false. */
bool json_parse(struct json *json, const char *text, size_t length);
void json_free(struct json *json);

int json_member(const struct json *json, int object, const char *key);
int json_first(const struct json *json, int array);
int json_next(const struct json *json, int node);
/* Read an integer, written as a number or as a string of digits. */
bool json_integer(const struct json *json, int node, int64_t *value);
/* Read a number as it is written in JSON. */
bool json_number(const struct json *json, int node, double *value);
/* Is it this word: true, false or null? */
bool json_word_is(const struct json *json, int node, const char *word);
/* Read a string with its escapes resolved; the caller frees it. NULL: not a string, or no memory. */
char *json_string(const struct json *json, int node);

#endif
