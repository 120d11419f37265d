module udp_flows_go

go 1.24
