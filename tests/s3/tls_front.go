// tls_front: a server that speaks HTTP/2 over TLS, and passes everything on to one that does not.
//
//	tls_front BACKEND CERTIFICATE [h2|http/1.1]
//
// Makes a certificate for 127.0.0.1 and writes it to the file CERTIFICATE, prints {"endpoint": URL}, and serves until its
// standard input ends. GET /_protocols tells how many requests came by each protocol, and over how many connections.
package main

import (
	"crypto/ecdsa"
	"crypto/elliptic"
	"crypto/rand"
	"crypto/tls"
	"crypto/x509"
	"crypto/x509/pkix"
	"encoding/json"
	"encoding/pem"
	"fmt"
	"io"
	"log"
	"math/big"
	"net"
	"net/http"
	"net/http/httputil"
	"net/url"
	"os"
	"sync"
	"time"
)

type counts struct {
	mutex       sync.Mutex
	Requests    map[string]int `json:"requests"`
	Connections int            `json:"connections"`
}

func certificate(path string) (tls.Certificate, error) {
	key, err := ecdsa.GenerateKey(elliptic.P256(), rand.Reader)
	if err != nil {
		return tls.Certificate{}, err
	}
	template := x509.Certificate{
		SerialNumber:          big.NewInt(1),
		Subject:               pkix.Name{CommonName: "tornasole test"},
		NotBefore:             time.Now().Add(-time.Hour),
		NotAfter:              time.Now().Add(24 * time.Hour),
		KeyUsage:              x509.KeyUsageDigitalSignature | x509.KeyUsageCertSign,
		IsCA:                  true,
		BasicConstraintsValid: true,
		IPAddresses:           []net.IP{net.IPv4(127, 0, 0, 1)},
	}
	der, err := x509.CreateCertificate(rand.Reader, &template, &template, &key.PublicKey, key)
	if err != nil {
		return tls.Certificate{}, err
	}
	text := pem.EncodeToMemory(&pem.Block{Type: "CERTIFICATE", Bytes: der})
	return tls.Certificate{Certificate: [][]byte{der}, PrivateKey: key}, os.WriteFile(path, text, 0o600)
}

func main() {
	if len(os.Args) < 3 || len(os.Args) > 4 {
		log.Fatal("usage: tls_front BACKEND CERTIFICATE [h2|http/1.1]")
	}
	backend, err := url.Parse(os.Args[1])
	if err != nil {
		log.Fatal(err)
	}
	made, err := certificate(os.Args[2])
	if err != nil {
		log.Fatal(err)
	}
	seen := counts{Requests: map[string]int{}}
	// The host stays as it was asked for: it is part of what is signed.
	proxy := &httputil.ReverseProxy{Director: func(request *http.Request) {
		request.URL.Scheme, request.URL.Host = backend.Scheme, backend.Host
	}}
	handler := http.HandlerFunc(func(writer http.ResponseWriter, request *http.Request) {
		seen.mutex.Lock()
		if request.URL.Path == "/_protocols" {
			text, _ := json.Marshal(&seen)
			seen.mutex.Unlock()
			writer.Write(text)
			return
		}
		seen.Requests[request.Proto]++
		seen.mutex.Unlock()
		proxy.ServeHTTP(writer, request)
	})
	server := &http.Server{
		Handler:   handler,
		TLSConfig: &tls.Config{Certificates: []tls.Certificate{made}},
		ErrorLog:  log.New(io.Discard, "", 0),
		ConnState: func(_ net.Conn, state http.ConnState) {
			if state == http.StateNew {
				seen.mutex.Lock()
				seen.Connections++
				seen.mutex.Unlock()
			}
		},
	}
	if len(os.Args) == 4 && os.Args[3] == "http/1.1" {
		server.TLSNextProto = map[string]func(*http.Server, *tls.Conn, http.Handler){}
	}
	listener, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		log.Fatal(err)
	}
	fmt.Printf("{\"endpoint\": \"https://%s\"}\n", listener.Addr())
	go func() {
		io.Copy(io.Discard, os.Stdin)
		os.Exit(0)
	}()
	log.Fatal(server.ServeTLS(listener, "", ""))
}
