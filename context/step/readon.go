package step

import (
	"fmt"
	"strings"
)

// Place is where a text begins in the one that a call of fs:read_file reads, in
// the numbers that such calls count with.
type Place struct {
	// Line is its first line, from 1; zero when the call counted bytes.
	Line int64
	// Byte is its first byte; it is known of Line 0 and 1.
	Byte int64
}

// PlaceOf returns where the text begins that a call of fs:read_file with these
// arguments gives.
func PlaceOf(args map[string]any) Place {
	_, limited := args["limit_bytes"]
	if first, byBytes := integer(args["offset_bytes"]); byBytes || limited {
		return Place{Byte: max(first, 0)}
	}
	line, ok := integer(args["offset"])
	if !ok {
		line, _ = integer(args["start_line"])
	}
	return Place{Line: max(line, 1)}
}

// Next says how to read on behind the beginning of a text that begins at p, such
// as "offset 12", or nothing when that is not known. ended says that the
// beginning ends with its line.
func (p Place) Next(beginning string, ended bool) string {
	lines := int64(strings.Count(beginning, "\n"))
	if ended {
		lines++
	}
	switch {
	case p.Line > 0 && lines > 0:
		return fmt.Sprintf("offset %d", p.Line+lines)
	case p.Line <= 1:
		return fmt.Sprintf("offset_bytes %d", p.Byte+int64(len(beginning)))
	}
	return ""
}
