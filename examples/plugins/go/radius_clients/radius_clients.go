// RADIUS clients that ask for access (RFC 2865): a plugin of the compile world. netdyno compiles its scenario once; then it costs
// nothing a frame, on any engine.

package main

import (
	"encoding/hex"
	"encoding/json"
	"fmt"
	"strings"
)

type options struct {
	Clients string `json:"clients"`
	Server  string `json:"server"`
	User    string `json:"user"`
	Digits  int    `json:"digits"`
}

func init() {
	Compiles(Description{
		Name:    "radius_clients",
		Version: "0.1.0",
		About:   "RADIUS Access-Request messages of many users, each with an authenticator of chance.",
		Options: json.RawMessage(`{
			"type": "object",
			"additionalProperties": false,
			"properties": {
				"clients": {"type": "string", "default": "10.0.0.0/24", "description": "IPv4 addresses of access servers."},
				"server": {"type": "string", "default": "198.18.0.1", "description": "IPv4 address of the RADIUS server."},
				"user": {"type": "string", "default": "user", "maxLength": 60, "description": "Users' names begin so; a counting number follows."},
				"digits": {"type": "integer", "default": 6, "minimum": 1, "maximum": 9, "description": "Digits of that number: 6 are a million users."}
			}
		}`),
		Example: []Example{
			{About: "A million users", Set: map[string]any{}},
			{About: "100 users of one access server", Set: map[string]any{"clients": "10.0.0.1", "user": "u", "digits": 2}},
		},
	}, compile)
}

func compile(text json.RawMessage, _ Run) (*Scenario, *Fault) {
	o := options{Clients: "10.0.0.0/24", Server: "198.18.0.1", User: "user", Digits: 6}
	if err := json.Unmarshal(text, &o); err != nil {
		return nil, &Fault{Message: err.Error()}
	}
	if len(o.User) > 60 {
		return nil, &Fault{Path: "/user", Message: "60 characters at most"}
	}
	if o.Digits < 1 || o.Digits > 9 {
		return nil, &Fault{Path: "/digits", Message: "1 to 9"}
	}
	// Access-Request, identifier, length; an authenticator of 16 bytes; User-Name, User-Password of 16 bytes.
	name := o.User + strings.Repeat("0", o.Digits)
	length := 20 + 2 + len(name) + 18
	message := []byte{1, 0, byte(length >> 8), byte(length)}
	message = append(message, make([]byte, 16)...)
	message = append(message, 1, byte(2+len(name)))
	first := len(message) + len(o.User)
	message = append(message, name...)
	password := len(message) + 2
	message = append(message, 2, 18)
	message = append(message, make([]byte, 16)...)
	fields := []string{"field(1, 8, 0..255)", "field(4, 64, random())", "field(12, 64, random())"}
	for digit, every := 0, 1; digit < o.Digits; digit, every = digit+1, every*10 {
		fields = append(fields, fmt.Sprintf("field(%d, 8, 48..57 every=%d)", first+o.Digits-1-digit, every))
	}
	for half := 0; half < 2; half++ {
		fields = append(fields, fmt.Sprintf("field(%d, 64, random())", password+8*half))
	}
	frame := fmt.Sprintf(`ipv4(src=%s, dst=%s)/udp(sport=49152..65535, dport=1812)/raw(hex="%s", fields=[%s])`,
		o.Clients, o.Server, hex.EncodeToString(message), strings.Join(fields, ", "))
	return &Scenario{Streams: []Stream{{Name: "access requests", Frame: frame}}}, nil
}
