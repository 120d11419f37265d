/* NTP clients that ask for the time (RFC 5905): a plugin of the compile world, in C without a library. */
#define NETDYNO_DESCRIPTION \
	"{\"name\":\"ntp_clients\",\"version\":\"0.1.0\",\"about\":\"NTP requests of many clients, each with a time stamp of chance.\"," \
	"\"world\":\"compile\",\"options\":{\"type\":\"object\",\"additionalProperties\":false,\"properties\":{" \
	"\"clients\":{\"type\":\"string\",\"default\":\"10.0.0.0/16\",\"maxLength\":100,\"description\":\"IPv4 addresses of clients.\"}," \
	"\"server\":{\"type\":\"string\",\"default\":\"198.18.0.1\",\"maxLength\":100,\"description\":\"IPv4 address of the server.\"}," \
	"\"version\":{\"type\":\"integer\",\"default\":4,\"minimum\":1,\"maximum\":4,\"description\":\"Version of NTP.\"}}}," \
	"\"example\":[{\"about\":\"65,536 clients\",\"set\":{}},{\"about\":\"Old clients\",\"set\":{\"version\":3}}],\"restricted\":false}"
#define NETDYNO_COMPILE
#include "netdyno.h"

void plugin_compile(const char *input, struct netdyno_text *out)
{
	static const char digits[] = "0123456789abcdef";
	char clients[101], server[101], frame[1024], first[3] = { 0 };
	struct netdyno_text packet = { frame, 0, sizeof frame };
	uint64_t version = netdyno_number(input, "version", 4);

	if (version < 1 || version > 4) {
		netdyno_fault(out, "/version", "1 to 4");
		return;
	}
	netdyno_string(input, "clients", "10.0.0.0/16", clients, sizeof clients);
	netdyno_string(input, "server", "198.18.0.1", server, sizeof server);
	/* No warning, version, mode 3 (client). */
	first[0] = digits[(version << 3 | 3) >> 4];
	first[1] = digits[(version << 3 | 3) & 15];
	netdyno_put(&packet, "ipv4(src=");
	netdyno_put(&packet, clients);
	netdyno_put(&packet, ", dst=");
	netdyno_put(&packet, server);
	netdyno_put(&packet, ")/udp(sport=49152..65535, dport=123)/raw(hex=\"");
	netdyno_put(&packet, first);
	/* The transmit time stamp is the last of the 48 bytes. */
	netdyno_put(&packet, "\", len=48, fields=[field(40, 64, random())])");
	netdyno_put(out, "{\"scenario\":{\"streams\":[{\"name\":\"ntp\",\"frame\":");
	netdyno_put_string(out, frame);
	netdyno_put(out, "}]}}");
}
