package compress

import (
	"fmt"
	"strings"
	"unicode/utf8"

	"github.com/loom-bridge/loom-bridge/context/blob"
	"github.com/loom-bridge/loom-bridge/context/media"
)

// What is shown of one member of an object at most, in characters.
const (
	keyChars   = 100
	valueChars = 200
)

// api shows the members of an object, or nil of anything else: values that are
// short themselves, of arrays and objects how many members they have.
func (c *Compressor) api(j *job, f frame) []string {
	if j.kind != blob.KindJSON || isArray(j.Content) {
		return nil
	}
	left := size(j.Content)
	l := lines{room: f.room(apiChars)}
	l.add(fmt.Sprintf("%d keys", left))
	for key, value := range members(j.Content) {
		more := fmt.Sprintf("… %d more keys", left)
		left--
		reserve := 0
		if left > 0 {
			reserve = utf8.RuneCountInString(more) + 1
		}
		if !l.addKeeping(memberLine(key, value), reserve) {
			l.add(more)
			break
		}
	}
	return l.all
}

func memberLine(key, value string) string {
	name := scalar(key, keyChars) + ": "
	switch value[0] {
	case '[':
		return name + fmt.Sprintf("[%d items]", size(value))
	case '{':
		return name + fmt.Sprintf("{%d keys}", size(value))
	}
	if url, ok := media.ParseDataURL(strings.Trim(value, `"`)); ok {
		return name + "[" + url.Info().Words() + "]"
	}
	return name + scalar(value, valueChars)
}
