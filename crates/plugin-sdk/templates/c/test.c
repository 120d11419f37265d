/* Runs the plugin without netdyno and without WebAssembly. */
#include "plugin.c"
#include <stdio.h>
#include <string.h>

int main(void)
{
	char room[4096];
	struct netdyno_text out = { room, 0, sizeof room };

	plugin_compile("{\"options\":{\"port\":4000}}", &out);
	if (!strstr(room, "dport=4000")) {
		puts(room);
		return 1;
	}
	puts("ok");
	return 0;
}
