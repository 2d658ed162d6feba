package respfront

import (
	"testing"

	"github.com/slipstream-go/slipstream/gateway/resource"
	"github.com/slipstream-go/slipstream/internal/gateway/access"
	"github.com/slipstream-go/slipstream/internal/gateway/frontend"
)

// After Swap open connections see other resources and rules, and stay logged in if their
// password is still valid.
func TestSwap(t *testing.T) {
	bothBackends(t, echo, Config{Users: users(), RequireAuth: true}, func(t *testing.T, f *fixture) {
		swap := func(config Config, resources ...frontend.Resource) {
			t.Helper()
			for i := range resources {
				resources[i].Columns = []resource.KeyColumn{{Name: "deptno", Kind: resource.Integer}}
			}
			v, err := f.server.Next(resources, config)
			if err != nil {
				t.Fatal(err)
			}
			f.server.Swap(v)
		}
		web, other := f.dial(t), f.dial(t)
		web.expect([][2]string{{"AUTH web " + webPassword, "+OK"}})
		other.expect([][2]string{{"AUTH " + otherPassword, "+OK"}})
		for range 40 { // often enough for the lane to remember it
			web.expect([][2]string{{"GET depts:1", dept(1)}})
			other.expect([][2]string{{"GET depts:1", dept(1)}})
		}
		all := users()
		var onlyWeb []User
		for _, u := range all {
			if u.Name == "web" {
				onlyWeb = append(onlyWeb, u)
			}
		}
		swap(Config{Users: onlyWeb, RequireAuth: true}, frontend.Resource{Name: "depts"}, frontend.Resource{Name: "departments"})
		web.expect([][2]string{
			{"GET depts:1", dept(1)},
			{"GET departments:1", dept(1)},
			{"GET blobs:00", "-ERR there is no such resource*"},
		})
		other.expect([][2]string{{"GET depts:1", textNotLoggedIn}, {"AUTH " + otherPassword, textBadPass}})
		swap(Config{Users: all, RequireAuth: true}, frontend.Resource{Name: "depts", Access: &access.Rule{Keys: []string{"other"}}})
		web.expect([][2]string{{"GET depts:1", "-NOPERM *"}, {"GET departments:1", "-ERR there is no such resource*"}})
		other.expect([][2]string{{"GET depts:1", textNotLoggedIn}})
		swap(Config{}, frontend.Resource{Name: "depts"})
		web.expect([][2]string{{"GET depts:1", dept(1)}})
		other.expect([][2]string{{"GET depts:1", dept(1)}})
		if _, err := f.server.Next(nil, Config{RequireAuth: true}); err == nil {
			t.Error("a login that must not be possible was accepted")
		}
	})
}
