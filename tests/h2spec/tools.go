//go:build tools

// Package h2spec pins the HTTP/2 conformance tool that `make h2spec` builds and runs against larder.
// Nothing of it is part of larder.
package h2spec

import _ "github.com/summerwind/h2spec/cmd/h2spec"
