package httpfront

import (
	"encoding/json"
	"net/http"
	"strconv"
)

// problem is the body of an error answer (RFC 9457). The type is omitted, which
// means about:blank: the status determines the kind.
type problem struct {
	Title  string `json:"title"`
	Status int    `json:"status"`
	Detail string `json:"detail,omitempty"`
}

var problemType = []string{"application/problem+json"}

// problem fills rsp with an error answer. The detail reaches the client: it
// must not reveal statements, files or addresses. The fields for metrics and logs stay.
func (s *Service) problem(rsp *Response, status int, detail string) {
	body, err := json.Marshal(problem{Title: http.StatusText(status), Status: status, Detail: detail})
	if err != nil { // a struct of strings and an int cannot fail
		body = []byte(`{"status":` + strconv.Itoa(status) + `}`)
	}
	*rsp = Response{
		Status:        status,
		ContentType:   problemType,
		ContentLength: lengthField(len(body)),
		CacheControl:  noStore,
		Body:          body,
		Size:          len(body),
		Resource:      rsp.Resource,
		Caller:        rsp.Caller,
	}
}
