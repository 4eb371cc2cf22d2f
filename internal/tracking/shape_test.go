package tracking

import "testing"

func TestShape(t *testing.T) {
	t.Parallel()
	rows := `[{"referId":"A","rawTrackingNumber":"1"},{"referId":"B","rawTrackingNumber":"2"}]`
	tests := []struct {
		status, refused int
		answer, want    string
		agrees          bool
	}{
		{200, 0, ``, `200 empty`, true},
		{200, 0, `<html>`, `200 HTML`, true},
		{200, 0, `false`, `200 false`, true},
		{200, 0, `"error"`, `200 "error"`, true},
		{200, 0, `{"status":"error"}`, `200 {status:"error"}`, true},
		{200, 0, `{"status":"ok","id":"4f1c"}`, `200 {status:"ok" id:string}`, true},
		{200, 0, `{"id":"77ab","requestId":12}`, `200 {id:string requestId:number}`, true},
		{202, 0, `{"accepted":2,"rejected":0}`, `202 {accepted:all rejected:0}`, true},
		{202, 0, `{"accepted":0,"rejected":2}`, `202 {accepted:0 rejected:all}`, false},
		{202, 1, `{"accepted":1,"rejected":1}`, `202 {accepted:some rejected:some}`, true},
		{202, 0, `{"data":{"accepted":1}}`, `202 {data:{accepted:some}}`, false},
		{200, 0, `{"code":0,"errorCode":0}`, `200 {code:number errorCode:number}`, true},
		{200, 0, `{"data":` + rows + `}`, `200 {data:[rows]}`, true},
		{200, 0, `{"data":[{"referId":"A"}]}`, `200 {data:[rows]}`, false},
		{207, 1, `{"data":[{"referId":"A"}],"errors":[{"referId":"B"}]}`, `207 {data:[rows] errors:[rows]}`, true},
		{200, 0, `{"data":null,"message":"quota exceeded","items":[],"codes":[1,2]}`, `200 {data:null message:"quota exceeded" items:[] codes:[…]}`, true},
		{200, 0, `{"A-1":{},"A-2":{}}`, `200 {…}`, true},
		{400, 0, `{"message":"number is bad"}`, `400 {message:string}`, true},
	}
	for _, tt := range tests {
		got, agrees := ReadBody([]byte(tt.answer)).Shape(tt.status, 2, tt.refused)
		if got != tt.want || agrees != tt.agrees {
			t.Errorf("%s: %s, agrees %v; want %s, %v", tt.answer, got, agrees, tt.want, tt.agrees)
		}
	}
}
