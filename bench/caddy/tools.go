//go:build tools

// Package caddy pins the web server that `make bench` measures beside larder. Nothing of it is part of larder.
package caddy

import _ "github.com/caddyserver/caddy/v2/cmd/caddy"
