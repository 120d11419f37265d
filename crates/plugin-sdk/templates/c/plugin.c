/* Requests of many clients to a UDP service. */
#define NETDYNO_DESCRIPTION \
	"{\"name\":\"PLUGIN_NAME\",\"version\":\"0.1.0\",\"about\":\"Requests of many clients to a UDP service, each with a number of chance.\"," \
	"\"world\":\"compile\",\"options\":{\"type\":\"object\",\"additionalProperties\":false,\"properties\":{" \
	"\"clients\":{\"type\":\"string\",\"default\":\"10.0.0.0/16\",\"maxLength\":100,\"description\":\"IPv4 addresses of clients.\"}," \
	"\"port\":{\"type\":\"integer\",\"default\":7,\"minimum\":1,\"maximum\":65535,\"description\":\"Port of the service.\"}}}," \
	"\"example\":[{\"about\":\"Clients of a /24\",\"set\":{\"clients\":\"10.1.0.0/24\"}}],\"restricted\":false}"
#define NETDYNO_COMPILE
#include "netdyno.h"

void plugin_compile(const char *input, struct netdyno_text *out)
{
	char clients[101], frame[512];
	struct netdyno_text packet = { frame, 0, sizeof frame };

	netdyno_string(input, "clients", "10.0.0.0/16", clients, sizeof clients);
	netdyno_put(&packet, "ipv4(src=");
	netdyno_put(&packet, clients);
	netdyno_put(&packet, ", dst=198.18.0.1)/udp(sport=1024..65535, dport=");
	netdyno_put_number(&packet, netdyno_number(input, "port", 7));
	netdyno_put(&packet, ")/raw(\"request \", len=12, fields=[field(8, 32, random())])");
	netdyno_put(out, "{\"scenario\":{\"streams\":[{\"name\":\"requests\",\"frame\":");
	netdyno_put_string(out, frame);
	netdyno_put(out, "}]}}");
}
