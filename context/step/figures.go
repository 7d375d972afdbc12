package step

import "encoding/json"

// figures are what the forms of a step need of its metadata; nil is unknown.
type figures struct {
	Size, Bytes, Count, ExitCode *int64
}

// decodeFigures reads metadata; what is missing or mistyped stays unknown.
func decodeFigures(metadata json.RawMessage) figures {
	var object map[string]any
	decoded, err := DecodeJSON(metadata)
	if err != nil {
		return figures{}
	}
	object, _ = decoded.(map[string]any)
	number := func(key string) *int64 {
		if n, ok := wholeNumber(object[key]); ok {
			return &n
		}
		return nil
	}
	f := figures{Size: number("size"), Bytes: number("bytes"), Count: number("count")}
	if code, ok := integer(object["exit_code"]); ok {
		f.ExitCode = &code
	}
	return f
}
