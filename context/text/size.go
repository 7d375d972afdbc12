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
