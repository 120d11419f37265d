/* UDP flows: a plugin of the frames world, in C without a library. */
#define NETDYNO_DESCRIPTION \
	"{\"name\":\"udp_flows_c\",\"version\":\"0.1.0\",\"about\":\"UDP datagrams of so many flows, frame by frame: each source address has 1,000 ports.\"," \
	"\"world\":\"frames\",\"options\":{\"type\":\"object\",\"additionalProperties\":false,\"properties\":{" \
	"\"flows\":{\"type\":\"integer\",\"default\":65536,\"minimum\":1,\"maximum\":16000000,\"description\":\"Number of flows.\"}," \
	"\"size\":{\"type\":\"integer\",\"default\":60,\"minimum\":60,\"maximum\":1514,\"description\":\"Bytes of a frame, without frame check sequence.\"}}}," \
	"\"example\":[{\"about\":\"65,536 flows of small frames\",\"set\":{}},{\"about\":\"Ten flows of full frames\",\"set\":{\"flows\":10,\"size\":1514}}]," \
	"\"restricted\":false}"
#define NETDYNO_FRAMES
#include "netdyno.h"

static uint64_t flows;
static uint32_t size;
/* Ethernet, IPv4 and UDP, with all that does not vary; and the sum of its IPv4 header. */
static uint8_t template[1514];
static uint32_t header_sum;

static void put16(uint8_t *at, uint32_t value)
{
	at[0] = (uint8_t)(value >> 8);
	at[1] = (uint8_t)value;
}

int plugin_open(const char *input, struct netdyno_text *fault)
{
	static const uint8_t begin[38] = { 2, 0, 0, 0, 0, 2, 2, 0, 0, 0, 0, 1, 8, 0, 0x45, 0, 0, 0, 0, 0, 0x40, 0, 64, 17,
					   0, 0, 0, 0, 0, 0, 198, 18, 0, 1, 0, 0, 0, 9 };

	flows = netdyno_number(input, "flows", 65536);
	size = (uint32_t)netdyno_number(input, "size", 60);
	if (flows < 1 || flows > 16000000) {
		netdyno_fault(fault, "/flows", "1 to 16000000");
		return 0;
	}
	if (size < 60 || size > 1514) {
		netdyno_fault(fault, "/size", "60 to 1514");
		return 0;
	}
	for (size_t i = 0; i < sizeof begin; i++)
		template[i] = begin[i];
	put16(template + 16, size - 14);
	put16(template + 38, size - 34);
	header_sum = netdyno_sum(template + 14, 20, 0);
	return 1;
}

uint32_t plugin_longest(void)
{
	return size;
}

int64_t plugin_count(void)
{
	return -1;
}

uint32_t plugin_frame(uint64_t n, uint8_t *frame)
{
	uint64_t flow = n % flows;
	uint32_t source = 10u << 24 | (uint32_t)(flow / 1000);

	for (uint32_t i = 0; i < size; i++)
		frame[i] = template[i];
	put16(frame + 26, source >> 16);
	put16(frame + 28, source);
	put16(frame + 24, netdyno_checksum(header_sum + (source >> 16) + (source & 0xffff)));
	put16(frame + 34, (uint32_t)(10000 + flow % 1000));
	return size;
}
