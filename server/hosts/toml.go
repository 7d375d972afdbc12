package hosts

import (
	"bytes"
	"fmt"
	"reflect"
	"strings"

	"github.com/pelletier/go-toml/v2"
)

// Lines around what is ours in a file of TOML.
const (
	tomlBegin = "# begin of loom-bridge: `loom-bridge-server mcp uninstall codex` takes it away"
	tomlEnd   = "# end of loom-bridge"
)

// tomlServer is the server in a file of Codex: its own table behind all others.
type tomlServer struct{ argv, variables []string }

func (e tomlServer) put(text []byte) ([]byte, error) {
	rest, err := e.take(text)
	if err != nil {
		return nil, err
	}
	before, err := decodeTOML(rest)
	if err != nil {
		return nil, err
	}
	if servers, ok := before["mcp_servers"].(map[string]any); ok && servers[Server] != nil {
		return nil, fmt.Errorf("%w: it has a table mcp_servers.%s that was not written by this command; remove that first", ErrMalformed, Server)
	}
	block, err := e.block()
	if err != nil {
		return nil, err
	}
	out := bytes.Clone(text)
	if begin, end, ok := ownLines(text); ok {
		out = append(append(bytes.Clone(text[:begin]), block...), text[end:]...)
	} else {
		if len(out) > 0 && !bytes.HasSuffix(out, []byte("\n")) {
			out = append(out, '\n')
		}
		if len(out) > 0 {
			out = append(out, '\n')
		}
		out = append(out, block...)
	}
	after, err := decodeTOML(out)
	if err != nil {
		return nil, err
	}
	servers, _ := after["mcp_servers"].(map[string]any)
	if delete(servers, Server); len(servers) == 0 && before["mcp_servers"] == nil {
		delete(after, "mcp_servers")
	}
	if !reflect.DeepEqual(before, after) {
		return nil, fmt.Errorf("%w: a table at its end would change what others mean", ErrMalformed)
	}
	return out, nil
}

func (tomlServer) take(text []byte) ([]byte, error) {
	if _, err := decodeTOML(text); err != nil {
		return nil, err
	}
	begin, end, ok := ownLines(text)
	if !ok {
		if bytes.Contains(text, []byte(tomlBegin)) {
			return nil, fmt.Errorf("%w: the line %q is missing", ErrMalformed, tomlEnd)
		}
		return text, nil
	}
	if begin > 0 && bytes.HasSuffix(text[:begin], []byte("\n\n")) {
		begin-- // the blank line in front is ours, too
	}
	return append(bytes.Clone(text[:begin]), text[end:]...), nil
}

// block are our lines.
func (e tomlServer) block() ([]byte, error) {
	table := struct {
		Command   string   `toml:"command"`
		Args      []string `toml:"args"`
		Variables []string `toml:"env_vars,omitempty"`
	}{e.argv[0], e.argv[1:], e.variables}
	text, err := toml.Marshal(table)
	if err != nil {
		return nil, err
	}
	return fmt.Appendf(nil, "%s\n[mcp_servers.%s]\n%s%s\n", tomlBegin, Server, text, tomlEnd), nil
}

// ownLines is where our lines begin and end.
func ownLines(text []byte) (begin, end int, ok bool) {
	begin = lineAt(text, tomlBegin, 0)
	if begin < 0 {
		return 0, 0, false
	}
	last := lineAt(text, tomlEnd, begin)
	if last < 0 {
		return 0, 0, false
	}
	end = last + len(tomlEnd)
	if n := bytes.IndexByte(text[end:], '\n'); n >= 0 {
		return begin, end + n + 1, true
	}
	return begin, len(text), true
}

// lineAt is where a line begins at or behind an offset, or -1.
func lineAt(text []byte, line string, from int) int {
	at := from
	for one := range strings.Lines(string(text[from:])) {
		if strings.TrimRight(one, "\r\n") == line {
			return at
		}
		at += len(one)
	}
	return -1
}

func decodeTOML(text []byte) (map[string]any, error) {
	out := map[string]any{}
	if err := toml.Unmarshal(text, &out); err != nil {
		return nil, fmt.Errorf("%w: %w", ErrMalformed, err)
	}
	return out, nil
}
