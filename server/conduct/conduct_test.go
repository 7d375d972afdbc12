package conduct_test

import (
	"strings"
	"testing"

	"google.golang.org/protobuf/reflect/protoreflect"
	"google.golang.org/protobuf/reflect/protoregistry"
	"google.golang.org/protobuf/types/descriptorpb"

	_ "github.com/loom-bridge/loom-bridge/proto/gen/loom/v1"
	loombridgev1 "github.com/loom-bridge/loom-bridge/proto/gen/loombridge/v1"
	"github.com/loom-bridge/loom-bridge/server/conduct"
)

// reads are the methods of loom.v1 and of A2A that change nothing.
var reads = map[protoreflect.Name]bool{
	"GetAgentState": true, "Subscribe": true, "GetStats": true, "GetRecentPlans": true, "CheckDuplicate": true,
	"CheckExecuted": true, "GetExecutionStats": true, "Retrieve": true, "SummarizeEpisode": true, "ListTools": true,
	"GetTask": true, "SubscribeToTask": true, "GetExtendedAgentCard": true, "CreateTaskPushNotificationConfig": true,
	"GetTaskPushNotificationConfig": true, "ListTaskPushNotificationConfigs": true, "DeleteTaskPushNotificationConfig": true,
}

func eachMethod(pkg protoreflect.FullName, do func(method string, m protoreflect.MethodDescriptor)) {
	protoregistry.GlobalFiles.RangeFilesByPackage(pkg, func(file protoreflect.FileDescriptor) bool {
		for i := range file.Services().Len() {
			s := file.Services().Get(i)
			for j := range s.Methods().Len() {
				do("/"+string(s.FullName())+"/"+string(s.Methods().Get(j).Name()), s.Methods().Get(j))
			}
		}
		return true
	})
}

// Every method says what it does, and says the same as its idempotency level.
func TestEveryMethodHasItsConduct(t *testing.T) {
	t.Parallel()
	found := 0
	eachMethod("loombridge.v1", func(method string, m protoreflect.MethodDescriptor) {
		found++
		c := conduct.Of(method)
		o, _ := m.Options().(*descriptorpb.MethodOptions)
		level := o.GetIdempotencyLevel() == descriptorpb.MethodOptions_NO_SIDE_EFFECTS
		switch {
		case c.GetEffect() == loombridgev1.Effect_EFFECT_UNSPECIFIED:
			t.Errorf("%s has no option (conduct) with an effect", method)
		case level != (c.GetEffect() == loombridgev1.Effect_EFFECT_READS):
			t.Errorf("%s is %v, and NO_SIDE_EFFECTS is %v", method, c.GetEffect(), level)
		case c.GetWorks() && !m.IsStreamingClient() && !m.IsStreamingServer():
			t.Errorf("%s works like a stream, and is none", method)
		case strings.HasPrefix(string(m.Name()), "List") && !c.GetSearches():
			t.Errorf("%s lists what is stored, and is not said to search", method)
		case c.GetSearches() && m.IsStreamingServer() && !c.GetWorks():
			t.Errorf("%s searches, and does not work", method)
		case (c.GetAfterEnd() || c.GetAsksItself()) && level:
			t.Errorf("%s only reads, for which an ended agent is not asked", method)
		}
	})
	for _, foreign := range []protoreflect.FullName{"loom.v1", "lf.a2a.v1"} {
		eachMethod(foreign, func(method string, m protoreflect.MethodDescriptor) {
			if m.Parent().Name() == "Plugin" { // not served
				return
			}
			found++
			if known := conduct.Of(method) != nil; known == reads[m.Name()] {
				t.Errorf("%s: known as one that does more than read: %v", method, known)
			}
		})
	}
	if found < 70+23+11 {
		t.Errorf("%d methods were found", found)
	}
}
