module radius_clients

go 1.24
