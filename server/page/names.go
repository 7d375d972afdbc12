package page

import (
	"cmp"
	"encoding/base64"
	"slices"
	"strings"

	"google.golang.org/protobuf/proto"
)

// Sizes of pages of lists that say nothing else: without a page_size, and at most.
const (
	DefaultSize = 100
	MaxSize     = 1000
)

// Names marks the page tokens of a list whose items have names that none shares with
// another: a token holds the name of the last item of its page.
type Names string

// The lists that go on behind a name.
const (
	Approvals Names = "g1."
	Backups   Names = "k1."
	Blobs     Names = "b1."
	Given     Names = "v1."
	Grants    Names = "a2."
	Messages  Names = "m1."
	Relations Names = "r1."
	Servers   Names = "x1."
	Sessions  Names = "i1."
	Spaces    Names = "w1."
	Tools     Names = "t1."
)

// Token continues a listing behind a name.
func (n Names) Token(name string) string {
	return string(n) + base64.RawURLEncoding.EncodeToString([]byte(name))
}

// Parse is the inverse, for names of at most limit bytes; no token is no name.
func (n Names) Parse(token string, limit int) (name string, ok bool) {
	if token == "" {
		return "", true
	}
	text, ok := strings.CutPrefix(token, string(n))
	if !ok || len(text) > base64.RawURLEncoding.EncodedLen(limit) {
		return "", false
	}
	b, err := base64.RawURLEncoding.DecodeString(text)
	return string(b), err == nil && len(b) > 0
}

// Asked is what a request for a page of a list says.
type Asked interface {
	GetPageSize() int32
	GetPageToken() string
}

// Size is how many items the page has at most.
func Size(asked Asked) int { return cmp.Or(int(asked.GetPageSize()), DefaultSize) }

// Cut returns a page of a list that is read whole, as messages of at most limit bytes in all
// but for the first, and the token of the next page. The list is sorted by name, that of
// backups from the last to the first, and the request was checked.
func Cut[T any, M proto.Message](n Names, all []T, asked Asked, limit int, name func(T) string, message func(T) M) (out []M, next string) {
	if after, _ := n.Parse(asked.GetPageToken(), len(asked.GetPageToken())); after != "" {
		i, found := slices.BinarySearchFunc(all, after, func(item T, after string) int {
			if n == Backups {
				return strings.Compare(after, name(item))
			}
			return strings.Compare(name(item), after)
		})
		if found {
			i++
		}
		all = all[i:]
	}
	// What stands around a message, and around all of them.
	const frame = 16
	used := frame + len(n.Token(""))
	for i, item := range all {
		one := message(item)
		used += proto.Size(one) + frame
		if i == Size(asked) || i > 0 && used+2*len(name(all[i-1])) > limit {
			return out, n.Token(name(all[i-1]))
		}
		out = append(out, one)
	}
	return out, ""
}
