package page_test

import (
	"slices"
	"strings"
	"testing"

	"google.golang.org/protobuf/reflect/protoreflect"
	"google.golang.org/protobuf/reflect/protoregistry"

	loombridgev1 "github.com/loom-bridge/loom-bridge/proto/gen/loombridge/v1"
	"github.com/loom-bridge/loom-bridge/server/page"
)

// Every method that lists has pages, as AIP-158 names them, and none has a word of its own.
func TestEveryListHasPages(t *testing.T) {
	t.Parallel()
	found := 0
	protoregistry.GlobalFiles.RangeFilesByPackage("loombridge.v1", func(file protoreflect.FileDescriptor) bool {
		for i := range file.Services().Len() {
			for j := range file.Services().Get(i).Methods().Len() {
				m := file.Services().Get(i).Methods().Get(j)
				if !strings.HasPrefix(string(m.Name()), "List") {
					continue
				}
				found++
				in, out := m.Input().Fields(), m.Output().Fields()
				if size := in.ByName("page_size"); size == nil || size.Kind() != protoreflect.Int32Kind {
					t.Errorf("%s takes no page_size", m.FullName())
				}
				if token := in.ByName("page_token"); token == nil || token.Kind() != protoreflect.StringKind {
					t.Errorf("%s takes no page_token", m.FullName())
				}
				if next := out.ByName("next_page_token"); next == nil || next.Kind() != protoreflect.StringKind {
					t.Errorf("%s answers no next_page_token", m.FullName())
				}
				for _, other := range []protoreflect.Name{"limit", "truncated", "offset"} {
					if in.ByName(other) != nil || out.ByName(other) != nil {
						t.Errorf("%s has %s beside its pages", m.FullName(), other)
					}
				}
			}
		}
		return true
	})
	if found < 16 {
		t.Errorf("%d lists were found", found)
	}
}

// A listing goes on behind the last name of its page, also where that is gone since, and a
// page ends where messages have no room, but for the first.
func TestCut(t *testing.T) {
	t.Parallel()
	name := func(s string) string { return s }
	space := func(s string) *loombridgev1.Space { return &loombridgev1.Space{SpaceId: s} }
	walk := func(of page.Names, all []string, size int32, limit int, gone bool) (got []string) {
		ask := &loombridgev1.ListSpacesRequest{PageSize: size}
		for {
			out, next := page.Cut(of, all, ask, limit, name, space)
			for _, one := range out {
				got = append(got, one.GetSpaceId())
			}
			if len(out) == 0 && next != "" || len(out) > int(size) {
				t.Fatalf("a page of %d, and the next %q", len(out), next)
			}
			if ask.PageToken = next; next == "" {
				return got
			}
			if gone {
				all = slices.DeleteFunc(slices.Clone(all), func(s string) bool { return s == got[len(got)-1] })
			}
		}
	}
	up := []string{"a", "a b", "b", strings.Repeat("z", 100), "ü", "ü\x00"}
	down := slices.Clone(up)
	slices.Reverse(down)
	for size := range int32(8) {
		if size == 0 {
			continue
		}
		for _, limit := range []int{1, 100, 1 << 20} {
			for _, gone := range []bool{false, true} {
				if got := walk(page.Spaces, up, size, limit, gone); !slices.Equal(got, up) {
					t.Errorf("pages of %d and %d bytes: %q", size, limit, got)
				}
				if got := walk(page.Backups, down, size, limit, gone); !slices.Equal(got, down) {
					t.Errorf("descending pages of %d and %d bytes: %q", size, limit, got)
				}
			}
		}
	}
}

func FuzzNames(f *testing.F) {
	f.Add(page.Spaces.Token("team"))
	f.Add("w1.")
	f.Fuzz(func(t *testing.T, token string) {
		name, ok := page.Spaces.Parse(token, 16)
		if ok && len(name) > 16 || !ok && name != "" {
			t.Errorf("%q is read as %q", token, name)
		}
		if again, same := page.Spaces.Parse(page.Spaces.Token(name), 16); ok && name != "" && (again != name || !same) {
			t.Errorf("%q comes back as %q", name, again)
		}
	})
}
