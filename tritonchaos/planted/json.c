#include "json.h"

#include <limits.h>
#include <stdlib.h>
#include <string.h>

/* Deeper than any ModelConfig; keeps the recursion bounded. */
enum { MAX_DEPTH = 64 };

static int add_node(struct json *json, enum json_kind kind)
{
    if (json->count == json->capacity) {
        int capacity = json->capacity ? json->capacity * 2 : 256;
        if (json->capacity > INT_MAX / 4)
            return -1;
        struct json_node *nodes = realloc(json->nodes, (size_t)capacity * sizeof *nodes);
        if (!nodes)
            return -1;
        json->nodes = nodes;
        json->capacity = capacity;
    }
    json->nodes[json->count] = (struct json_node){.kind = kind, .start = json->at, .end = json->at, .child = -1, .next = -1};
    return json->count++;
}

static int peek(const struct json *json)
{
    return json->at < json->length ? (unsigned char)json->text[json->at] : -1;
}

static void skip_space(struct json *json)
{
    while (peek(json) == ' ' || peek(json) == '\t' || peek(json) == '\n' || peek(json) == '\r')
        json->at++;
}

static bool take(struct json *json, char wanted)
{
    skip_space(json);
    if (peek(json) != wanted)
        return false;
    json->at++;
    return true;
}

static int parse_string(struct json *json, enum json_kind kind)
{
    if (!take(json, '"'))
        return -1;
    int node = add_node(json, kind);
    if (node < 0)
        return -1;
    while (peek(json) >= 0x20 && peek(json) != '"')
        json->at += peek(json) == '\\' ? 2 : 1;
    if (peek(json) != '"')
        return -1;
    json->nodes[node].end = json->at++;
    return node;
}

/* A number, true, false or null: everything up to the next delimiter. */
static int parse_scalar(struct json *json)
{
    int first = peek(json);
    enum json_kind kind = first == '-' || (first >= '0' && first <= '9') ? JSON_NUMBER : JSON_WORD;
    int node = add_node(json, kind);
    if (node < 0)
        return -1;
    while (peek(json) > 0x20 && !strchr(",]}:\"[{", peek(json)))
        json->at++;
    json->nodes[node].end = json->at;
    return json->nodes[node].end > json->nodes[node].start ? node : -1;
}

static int parse_value(struct json *json, int depth);

static int parse_member(struct json *json, int depth)
{
    int key = parse_string(json, JSON_KEY);
    if (key < 0 || !take(json, ':'))
        return -1;
    int value = parse_value(json, depth);
    if (value < 0)
        return -1;
    json->nodes[key].child = value;
    return key;
}

static int parse_group(struct json *json, enum json_kind kind, int depth)
{
    char closing = kind == JSON_OBJECT ? '}' : ']';
    int group = add_node(json, kind);
    json->at++;
    if (group < 0 || take(json, closing))
        return group;
    int last = -1;
    do {
        int child = kind == JSON_OBJECT ? parse_member(json, depth) : parse_value(json, depth);
        if (child < 0)
            return -1;
        if (last < 0)
            json->nodes[group].child = child;
        else
            json->nodes[last].next = child;
        last = child;
    } while (take(json, ','));
    return take(json, closing) ? group : -1;
}

static int parse_value(struct json *json, int depth)
{
    skip_space(json);
    if (depth > MAX_DEPTH)
        return -1;
    switch (peek(json)) {
    case '{': return parse_group(json, JSON_OBJECT, depth + 1);
    case '[': return parse_group(json, JSON_ARRAY, depth + 1);
    case '"': return parse_string(json, JSON_STRING);
    default: return parse_scalar(json);
    }
}

bool json_parse(struct json *json, const char *text, size_t length)
{
    *json = (struct json){.text = text, .length = length};
    if (parse_value(json, 0) < 0)
        return false;
    skip_space(json);
    return json->at == length;
}

void json_free(struct json *json)
{
    free(json->nodes);
    *json = (struct json){0};
}

int json_member(const struct json *json, int object, const char *key)
{
    if (object < 0 || json->nodes[object].kind != JSON_OBJECT)
        return -1;
    size_t length = strlen(key);
    for (int at = json->nodes[object].child; at >= 0; at = json->nodes[at].next) {
        const struct json_node *node = &json->nodes[at];
        if (node->end - node->start == length && !memcmp(json->text + node->start, key, length))
            return node->child;
    }
    return -1;
}

int json_first(const struct json *json, int array)
{
    return array >= 0 && json->nodes[array].kind == JSON_ARRAY ? json->nodes[array].child : -1;
}

int json_next(const struct json *json, int node)
{
    return node >= 0 ? json->nodes[node].next : -1;
}

bool json_integer(const struct json *json, int node, int64_t *value)
{
    if (node < 0 || (json->nodes[node].kind != JSON_NUMBER && json->nodes[node].kind != JSON_STRING))
        return false;
    const char *at = json->text + json->nodes[node].start, *end = json->text + json->nodes[node].end;
    bool negative = at < end && *at == '-';
    at += negative;
    if (at == end)
        return false;
    int64_t total = 0;
    for (; at < end; at++) {
        if (*at < '0' || *at > '9' || total > (INT64_MAX - (*at - '0')) / 10)
            return false;
        total = total * 10 + (*at - '0');
    }
    *value = negative ? -total : total;
    return true;
}

bool json_number(const struct json *json, int node, double *value)
{
    char copy[32] = "", *end = NULL;
    size_t length = node < 0 ? 0 : json->nodes[node].end - json->nodes[node].start;
    if (node < 0 || json->nodes[node].kind != JSON_NUMBER || length >= sizeof copy)
        return false;
    memcpy(copy, json->text + json->nodes[node].start, length);
    *value = strtod(copy, &end);
    return end == copy + length;
}

bool json_word_is(const struct json *json, int node, const char *word)
{
    const struct json_node *found = node < 0 ? NULL : &json->nodes[node];
    return found && found->kind == JSON_WORD && found->end - found->start == strlen(word)
        && !memcmp(json->text + found->start, word, strlen(word));
}

static int hex_digit(char c)
{
    if (c >= '0' && c <= '9')
        return c - '0';
    if (c >= 'a' && c <= 'f')
        return c - 'a' + 10;
    return c >= 'A' && c <= 'F' ? c - 'A' + 10 : -1;
}

/* Write one \uXXXX as UTF-8; surrogates come out as three bytes each, which is enough to compare names. */
static size_t put_unicode(const char *digits, size_t available, char *out)
{
    unsigned code = 0;
    for (size_t i = 0; i < 4; i++) {
        int digit = i < available ? hex_digit(digits[i]) : -1;
        if (digit < 0)
            return 0;
        code = code << 4 | (unsigned)digit;
    }
    if (code < 0x80) {
        out[0] = (char)code;
        return 1;
    }
    if (code < 0x800) {
        out[0] = (char)(0xC0 | code >> 6);
        out[1] = (char)(0x80 | (code & 0x3F));
        return 2;
    }
    out[0] = (char)(0xE0 | code >> 12);
    out[1] = (char)(0x80 | (code >> 6 & 0x3F));
    out[2] = (char)(0x80 | (code & 0x3F));
    return 3;
}

char *json_string(const struct json *json, int node)
{
    if (node < 0 || json->nodes[node].kind != JSON_STRING)
        return NULL;
    const char *at = json->text + json->nodes[node].start, *end = json->text + json->nodes[node].end;
    /* Resolving an escape never makes it longer. */
    char *result = malloc((size_t)(end - at) + 1), *out = result;
    if (!result)
        return NULL;
    static const char letters[] = "bfnrt\"\\/", values[] = "\b\f\n\r\t\"\\/";
    while (at < end) {
        const char *letter = NULL;
        if (*at != '\\') {
            *out++ = *at++;
        } else if (at + 1 < end && at[1] == 'u') {
            out += put_unicode(at + 2, (size_t)(end - at - 2), out);
            at += end - at < 6 ? end - at : 6;
        } else {
            if (at + 1 < end && at[1] && (letter = strchr(letters, at[1])))
                *out++ = values[letter - letters];
            at += 2;
        }
    }
    *out = '\0';
    return result;
}
