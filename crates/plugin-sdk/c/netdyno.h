/* netdyno's plugins in C, without a library: clang --target=wasm32 -nostdlib. One header for both worlds; docs/writing-plugins.md
 * has the interface. Compiled for another machine than wasm32 it exports nothing, so that a plugin's functions can be tested natively.
 *
 * A plugin defines NETDYNO_DESCRIPTION (a JSON text) and, before this header is included, one of
 *   #define NETDYNO_COMPILE   and the function  void plugin_compile(const char *input, struct netdyno_text *out)
 *   #define NETDYNO_FRAMES    and the functions int  plugin_open(const char *input, struct netdyno_text *fault),
 *                             uint32_t plugin_longest(void), int64_t plugin_count(void) (-1: without end),
 *                             uint32_t plugin_frame(uint64_t n, uint8_t *frame)
 */
#ifndef NETDYNO_H
#define NETDYNO_H

#include <stddef.h>
#include <stdint.h>

/* Bytes of the input's and of the answer's buffers. */
#ifndef NETDYNO_ROOM
#define NETDYNO_ROOM (1 << 20)
#endif

/* A text that grows up to its room; what does not fit is left out. */
struct netdyno_text {
	char *at;
	size_t len, room;
};

static inline void netdyno_put(struct netdyno_text *out, const char *text)
{
	while (*text && out->len + 1 < out->room)
		out->at[out->len++] = *text++;
	out->at[out->len] = 0;
}

static inline void netdyno_put_number(struct netdyno_text *out, uint64_t number)
{
	char digits[21];
	int i = sizeof digits - 1;

	digits[i] = 0;
	do
		digits[--i] = (char)('0' + number % 10);
	while (number /= 10);
	netdyno_put(out, digits + i);
}

/* A text as a JSON string, quotes included. */
static inline void netdyno_put_string(struct netdyno_text *out, const char *text)
{
	netdyno_put(out, "\"");
	for (; *text; text++) {
		char one[3] = { *text, 0, 0 };

		if (*text == '"' || *text == '\\') {
			one[0] = '\\';
			one[1] = *text;
		}
		if ((unsigned char)*text >= ' ')
			netdyno_put(out, one);
	}
	netdyno_put(out, "\"");
}

/* A fault of one option, named by its JSON pointer: "/flows". */
static inline void netdyno_fault(struct netdyno_text *out, const char *path, const char *message)
{
	out->len = 0;
	netdyno_put(out, "{\"fault\":{\"path\":");
	netdyno_put_string(out, path);
	netdyno_put(out, ",\"message\":");
	netdyno_put_string(out, message);
	netdyno_put(out, "}}");
}

/* Behind the string that begins at `at`. */
static inline const char *netdyno_after_string(const char *at)
{
	for (at++; *at && *at != '"'; at++)
		if (*at == '\\' && at[1])
			at++;
	return *at ? at + 1 : at;
}

/* The value of an option in the input, which netdyno has checked against the schema: of the member `name` of the member
 * "options" of the outermost object. NULL if it is not set. */
static inline const char *netdyno_option(const char *input, const char *name)
{
	int depth = 0, in_options = 0, key = 0;

	for (const char *at = input; *at;) {
		if (*at == '"') {
			const char *end = netdyno_after_string(at), *after = end;

			while (*after == ' ' || *after == '\n' || *after == '\t' || *after == '\r')
				after++;
			if (key && *after == ':') {
				const char *wanted = depth == 1 ? "options" : name;
				const char *c = at + 1;

				while (*wanted && c < end - 1 && *c == *wanted)
					c++, wanted++;
				int same = !*wanted && c == end - 1;

				after++;
				while (*after == ' ' || *after == '\n' || *after == '\t' || *after == '\r')
					after++;
				if (depth == 1)
					in_options = same;
				else if (depth == 2 && in_options && same)
					return after;
				end = after;
			}
			key = 0;
			at = end;
			continue;
		}
		if (*at == '{') {
			depth++;
			key = 1;
		} else if (*at == '}') {
			depth--;
			key = 0;
		} else if (*at == ',') {
			key = 1;
		}
		at++;
	}
	return NULL;
}

/* A number, or `otherwise` if the option is not set. */
static inline uint64_t netdyno_number(const char *input, const char *name, uint64_t otherwise)
{
	const char *at = netdyno_option(input, name);
	uint64_t number = 0;

	if (!at || *at < '0' || *at > '9')
		return otherwise;
	while (*at >= '0' && *at <= '9')
		number = number * 10 + (uint64_t)(*at++ - '0');
	return number;
}

/* A string's characters (escapes are taken away), or `otherwise`. Returns `room` bytes at most, the zero included. */
static inline void netdyno_string(const char *input, const char *name, const char *otherwise, char *into, size_t room)
{
	const char *at = netdyno_option(input, name);
	size_t len = 0;

	if (at && *at == '"') {
		for (at++; *at && *at != '"' && len + 1 < room; at++) {
			if (*at == '\\' && at[1])
				at++;
			into[len++] = *at;
		}
	} else {
		while (*otherwise && len + 1 < room)
			into[len++] = *otherwise++;
	}
	into[len] = 0;
}

/* The Internet checksum (RFC 1071) of bytes, added to the sum of others. */
static inline uint32_t netdyno_sum(const uint8_t *bytes, size_t len, uint32_t sum)
{
	size_t i = 0;

	for (; i + 1 < len; i += 2)
		sum += (uint32_t)bytes[i] << 8 | bytes[i + 1];
	if (i < len)
		sum += (uint32_t)bytes[i] << 8;
	return sum;
}

static inline uint16_t netdyno_checksum(uint32_t sum)
{
	while (sum >> 16)
		sum = (sum & 0xffff) + (sum >> 16);
	return (uint16_t)~sum;
}

#ifdef __wasm32__
#define NETDYNO_EXPORT(name) __attribute__((export_name(#name)))

/* The compiler calls them by itself. */
void *memcpy(void *to, const void *from, size_t len)
{
	uint8_t *t = to;
	const uint8_t *f = from;

	while (len--)
		*t++ = *f++;
	return to;
}

void *memset(void *to, int byte, size_t len)
{
	uint8_t *t = to;

	while (len--)
		*t++ = (uint8_t)byte;
	return to;
}

static char netdyno_input[NETDYNO_ROOM + 1];
static char netdyno_output[NETDYNO_ROOM] __attribute__((aligned(4)));

static int64_t netdyno_packed(const void *at, size_t len)
{
	return (int64_t)((uint64_t)(uintptr_t)at << 32 | len);
}

NETDYNO_EXPORT(netdyno_abi) int32_t netdyno_abi(void)
{
	return 1;
}

NETDYNO_EXPORT(netdyno_alloc) int32_t netdyno_alloc(int32_t len)
{
	return len >= 0 && len <= NETDYNO_ROOM ? (int32_t)(uintptr_t)netdyno_input : 0;
}

NETDYNO_EXPORT(netdyno_describe) int64_t netdyno_describe(void)
{
	static const char text[] = NETDYNO_DESCRIPTION;

	return netdyno_packed(text, sizeof text - 1);
}

static struct netdyno_text netdyno_begin(int32_t at, int32_t len)
{
	struct netdyno_text out = { netdyno_output, 0, sizeof netdyno_output };

	netdyno_input[len >= 0 && len <= NETDYNO_ROOM && at ? len : 0] = 0;
	out.at[0] = 0;
	return out;
}

#ifdef NETDYNO_COMPILE
void plugin_compile(const char *input, struct netdyno_text *out);

NETDYNO_EXPORT(netdyno_compile) int64_t netdyno_compile(int32_t at, int32_t len)
{
	struct netdyno_text out = netdyno_begin(at, len);

	plugin_compile(netdyno_input, &out);
	return netdyno_packed(out.at, out.len);
}
#endif

#ifdef NETDYNO_FRAMES
int plugin_open(const char *input, struct netdyno_text *fault);
uint32_t plugin_longest(void);
int64_t plugin_count(void);
uint32_t plugin_frame(uint64_t n, uint8_t *frame);

NETDYNO_EXPORT(netdyno_open) int64_t netdyno_open(int32_t at, int32_t len)
{
	struct netdyno_text out = netdyno_begin(at, len);

	if (plugin_open(netdyno_input, &out)) {
		out.len = 0;
		netdyno_put(&out, "{\"frames\":{\"longest\":");
		netdyno_put_number(&out, plugin_longest());
		netdyno_put(&out, ",\"count\":");
		if (plugin_count() < 0)
			netdyno_put(&out, "null");
		else
			netdyno_put_number(&out, (uint64_t)plugin_count());
		netdyno_put(&out, "}}");
	}
	return netdyno_packed(out.at, out.len);
}

/* The lengths, 16 bits each, then the frames; both at multiples of 4 bytes. */
NETDYNO_EXPORT(netdyno_frames) int64_t netdyno_frames(int64_t first, int64_t step, int32_t count)
{
	uint8_t *batch = (uint8_t *)netdyno_output;
	size_t end = ((size_t)count * 2 + 3) & ~(size_t)3;

	if (count < 0 || end + (size_t)count * (plugin_longest() + 4) > sizeof netdyno_output)
		return 0;
	for (int32_t i = 0; i < count; i++) {
		uint32_t len = plugin_frame((uint64_t)first + (uint64_t)step * (uint64_t)i, batch + end);

		batch[2 * i] = (uint8_t)len;
		batch[2 * i + 1] = (uint8_t)(len >> 8);
		end = (end + len + 3) & ~(size_t)3;
	}
	if (count & 1)
		batch[2 * count] = batch[2 * count + 1] = 0;
	return netdyno_packed(batch, end);
}
#endif
#endif /* __wasm32__ */
#endif
