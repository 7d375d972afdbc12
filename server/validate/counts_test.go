package validate

import (
	"regexp"
	"strconv"
	"strings"
	"testing"

	"google.golang.org/protobuf/reflect/protoreflect"
	"google.golang.org/protobuf/reflect/protoregistry"

	"github.com/loom-bridge/loom-bridge/server/admission"
)

// Every field of a request that can be filled has a limit, and every limit has a
// field: who adds one must say how much it may hold.
func TestEveryFieldIsCounted(t *testing.T) {
	left := Counts()
	for _, field := range admission.Counted(admission.Requests(nativePackage)...) {
		limit, ok := left[field.FullName()]
		if !ok || limit <= 0 {
			t.Errorf("%s can be filled; name its limit in Counts and in its comment", field.FullName())
		}
		delete(left, field.FullName())
	}
	for name := range left {
		t.Errorf("Counts names %s, which no request can be filled with", name)
	}
}

// A rule of one field is that of a field that there is.
func TestEveryRuleHasAField(t *testing.T) {
	for field := range rules {
		if _, err := protoregistry.GlobalFiles.FindDescriptorByName(nativePackage + "." + protoreflect.FullName(field)); err != nil && strings.Contains(field, ".") {
			t.Errorf("%s: %v", field, err)
		}
	}
}

// The comments of the protos state how much is allowed.
func TestDocumentedCounts(t *testing.T) {
	comments := protoComments(t)
	for _, field := range admission.Counted(admission.Requests(nativePackage)...) {
		if field.ParentFile().Package() != nativePackage {
			continue
		}
		limit := Counts()[field.FullName()]
		comment := commentOf(comments, field)
		stated := regexp.MustCompile(`\b` + strconv.Itoa(limit) + `\b`)
		if !stated.MatchString(strings.ReplaceAll(comment, ",", "")) {
			t.Errorf("the comment of %s does not say %d: %s", field.FullName(), limit, comment)
		}
	}
}

// commentOf is the comment of a field with that of its oneof.
func commentOf(comments map[string]string, field protoreflect.FieldDescriptor) string {
	return comments[string(field.Parent().Name())+"."+string(field.Name())]
}
