package text

import "strconv"

// HumanSize returns a byte count for people: "512 bytes", "1.2KB", "50KB",
// "3MB". Halves round up, and from ten on there is no decimal. A negative
// count is "0 bytes".
func HumanSize(n int64) string {
	const kb, mb = 1 << 10, 1 << 20
	switch {
	case n < kb:
		return strconv.FormatInt(max(n, 0), 10) + " bytes"
	case n < mb:
		return inUnits(n, kb) + "KB"
	}
	return inUnits(n, mb) + "MB"
}

// inUnits divides with one decimal below ten and none from there on.
func inUnits(n, unit int64) string {
	if n >= 10*unit {
		whole, rest := n/unit, n%unit
		if rest >= unit/2 {
			whole++
		}
		return strconv.FormatInt(whole, 10)
	}
	tenths := (n*10 + unit/2) / unit
	text := strconv.FormatInt(tenths/10, 10)
	if tenths%10 != 0 {
		text += "." + strconv.FormatInt(tenths%10, 10)
	}
	return text
}

// Shape is the form of the JSON value that a text begins with.
type Shape struct {
	// Bytes is how long it is, Containers how many arrays and objects it has, and Depth how
	// deep they are nested.
	Bytes, Containers, Depth int
	// Values is about how many values it has, and at least half.
	Values int
}

// ShapeOf measures the JSON value that a text begins with; of anything else it returns some
// numbers.
func ShapeOf[T string | ~[]byte](text T) Shape {
	s := Shape{Bytes: len(text), Values: 1}
	level, quoted := 0, false
	for i := 0; i < len(text); i++ {
		switch c := text[i]; {
		case quoted && c == '\\':
			i++
		case c == '"':
			quoted = !quoted
		case quoted:
		case c == ',':
			s.Values++
		case c == '{' || c == '[':
			level++
			s.Containers, s.Values, s.Depth = s.Containers+1, s.Values+1, max(s.Depth, level)
		case c == '}' || c == ']':
			if level--; level == 0 {
				s.Bytes = i + 1
				return s
			}
		}
	}
	return s
}
