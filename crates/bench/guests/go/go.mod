module ports_go

go 1.24
