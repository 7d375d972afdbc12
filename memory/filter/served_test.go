package filter

import (
	"strings"
	"testing"
)

// The message about an unknown field names every field that there is.
func TestServedNamesAllFields(t *testing.T) {
	for name := range fields {
		if !strings.Contains(served+",", " "+name+",") && !strings.Contains(served, " "+name+" and ") {
			t.Errorf("%s is not named", name)
		}
	}
}
