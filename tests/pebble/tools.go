//go:build tools

// Package pebble pins the ACME server, and the DNS server beside it, that the tests of larder-acme build and run.
// Nothing of it is part of larder.
package pebble

import (
	_ "github.com/letsencrypt/pebble/v2/cmd/pebble"
	_ "github.com/letsencrypt/pebble/v2/cmd/pebble-challtestsrv"
)
