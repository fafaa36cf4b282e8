package main

import (
	"net/http"
	"strconv"

	vegeta "github.com/tsenart/vegeta/v12/lib"
)

// inTurn sends request n, as vegeta counts them, over connection n modulo their number. Only where that one still waits
// for an answer is another opened beside it.
type inTurn []*http.Transport

func newInTurn(connections int) inTurn {
	each := make(inTurn, connections)
	for i := range each {
		each[i] = &http.Transport{MaxIdleConnsPerHost: vegeta.DefaultConnections}
		// As "vegeta attack" has them; its options change the transport of the client that it is given.
		vegeta.NewAttacker(vegeta.Client(&http.Client{Transport: each[i]}), vegeta.DNSCaching(0), vegeta.HTTP2(true))
	}
	return each
}

func (t inTurn) RoundTrip(request *http.Request) (*http.Response, error) {
	n, err := strconv.Atoi(request.Header.Get("X-Vegeta-Seq"))
	if err != nil {
		return nil, err
	}
	return t[n%len(t)].RoundTrip(request)
}
