/* Runs both plugins without netdyno and without WebAssembly. Built with -DPLUGIN='"ntp_clients.c"' and the like. */
#include PLUGIN
#include <assert.h>
#include <stdio.h>
#include <string.h>

int main(void)
{
	char room[4096];
	struct netdyno_text out = { room, 0, sizeof room };

	assert(strstr(NETDYNO_DESCRIPTION, "\"options\""));
#ifdef NETDYNO_COMPILE
	plugin_compile("{\"run\":{\"version\":9},\"options\":{ \"clients\" : \"10.1.0.0/16\", \"version\": 3}}", &out);
	assert(strstr(room, "ipv4(src=10.1.0.0/16, dst=198.18.0.1)") && strstr(room, "raw(hex=\\\"1b\\\", len=48"));
	out.len = 0;
	plugin_compile("{\"options\":{\"version\":5}}", &out);
	assert(!strcmp(room, "{\"fault\":{\"path\":\"/version\",\"message\":\"1 to 4\"}}"));
#else
	uint8_t frame[1514], again[1514];

	assert(!plugin_open("{\"options\":{\"size\":59}}", &out) && strstr(room, "\"/size\""));
	assert(plugin_open("{\"options\":{\"flows\":2500}}", &out) && plugin_longest() == 60);
	for (uint64_t n = 3000; n--;) {
		assert(plugin_frame(n, frame) == 60 && plugin_frame(n + 2500, again) == 60 && !memcmp(frame, again, 60));
		assert(netdyno_checksum(netdyno_sum(frame + 14, 20, 0)) == 0);
	}
#endif
	puts("ok");
	return 0;
}
