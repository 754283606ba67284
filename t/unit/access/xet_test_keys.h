
/*
 * Defines keys and signatures from RFC 7515, 7517, 7638 and 8037.
 */

#ifndef _XET_TEST_KEYS_H_INCLUDED_
#define _XET_TEST_KEYS_H_INCLUDED_


/* RFC 7515, A.1: the secret, and a token */

#define HS_K                                                                  \
    "AyM1SysPpbyDfgZld3umj1qzKObwVMkoqQ-EstJQLr_T-1qS0gZH75aKtMN3Yj0iPS4hcgUu"\
    "TwjAzZr1Z9CAow"

#define HS_HEADER   "eyJ0eXAiOiJKV1QiLA0KICJhbGciOiJIUzI1NiJ9"

/* {"iss":"joe","exp":1300819380,"http://example.com/is_root":true} */

#define RFC_PAYLOAD                                                           \
    "eyJpc3MiOiJqb2UiLA0KICJleHAiOjEzMDA4MTkzODAsDQogImh0dHA6Ly9leGFtcGxlLmNv"\
    "bS9pc19yb290Ijp0cnVlfQ"

#define HS_MAC      "dBjftJeZ4CVP-mB92K27uhbUJU1p1r_wW1gFWFOEjXk"


/* RFC 7515, A.2 */

#define RS_N                                                                  \
    "ofgWCuLjybRlzo0tZWJjNiuSfb4p4fAkd_wWJcyQoTbji9k0l8W26mPddxHmfHQp-Vaw-4qP"\
    "CJrcS2mJPMEzP1Pt0Bm4d4QlL-yRT-SFd2lZS-pCgNMsD1W_YpRPEwOWvG6b32690r2jZ47s"\
    "oMZo9wGzjb_7OMg0LOL-bSf63kpaSHSXndS5z5rexMdbBYUsLA9e-KXBdQOS-UTo7WTBEMa2"\
    "R2CapHg665xsmtdVMTBQY4uDZlxvb3qCo5ZwKh9kG4LT6_I5IhlJH7aGhyxXFvUK-DWNmoud"\
    "F8NAco9_h9iaGNj8q2ethFkMLs91kzk2PAcDTW9gb54h4FRWyuXpoQ"

#define RS_HEADER   "eyJhbGciOiJSUzI1NiJ9"

#define RS_SIG                                                                \
    "cC4hiUPoj9Eetdgtv3hF80EGrhuB__dzERat0XF9g2VtQgr9PJbu3XOiZj5RZmh7AAuHIm4B"\
    "h-0Qc_lF5YKt_O8W2Fp5jujGbds9uJdbF9CUAr7t1dnZcAcQjbKBYNX4BAynRFdiuB--f_nZ"\
    "LgrnbyTyWzO75vRK5h6xBArLIARNPvkSjtQBMHlb1L07Qe7K0GarZRmB_eSN9383LcOLn6_d"\
    "O--xi12jzDwusC-eOkHWEsqtFZESc6BfI7noOPqvhJ1phCnvWh6IeYI2w9QOYEUipUTI8np6"\
    "LbgGY9Fs98rqVt5AXLIhWkWywlVmtVrBp0igcN_IoypGlUPQGe77Rw"


/* RFC 7515, A.3 */

#define ES_X        "f83OJ3D2xF1Bg8vub9tLe1gHMzV76e8Tus9uPHvRVEU"
#define ES_Y        "x_FEzRu9m36HLN_tue659LNpXW6pCyStikYjKIWI5a0"

#define ES_HEADER   "eyJhbGciOiJFUzI1NiJ9"

#define ES_SIG                                                                \
    "DtEhU3ljbEg8L38VWAfUAqOyKAM6-Xx-F4GawxaepmXFCgfTjDxw5djxLa8ISlSApmWQxfKT"\
    "UJqPP3-Kg6NU1Q"


/* RFC 8037, A.1, A.2, A.3 and A.4 */

#define ED_X        "11qYAYKxCrfVS_7TyWQHOg7hcvPapiMlrwIaaPcHURo"
#define ED_D        "nWGxne_9WmC6hEr0kuwsxERJxWl7MmkZcDusAxyuf2A"
#define ED_PRINT    "kPrK_qmxVWaYVA9wwBF6Iuo3vVzz7TxHCTwXBygrS4k"

#define ED_HEADER   "eyJhbGciOiJFZERTQSJ9"
#define ED_PAYLOAD  "RXhhbXBsZSBvZiBFZDI1NTE5IHNpZ25pbmc"

#define ED_SIG                                                                \
    "hgyY0il_MGCjP0JzlnLWG1PPOt7-09PGcvMg3AIbQR6dWbhijcNR4ki4iylGjg5BhVsPt9g7"\
    "sVvpAr_MuM0KAg"


/* RFC 7517, A.1; the thumbprint of the RSA key is in RFC 7638 */

#define JWK_X       "MKBCTNIcKUSDii11ySs3526iDZ8AiTo7Tu6KPAqv7D4"
#define JWK_Y       "4Etl6SRW2YiLUrN5vfvVHuhp7x8PxltmWWlbbM4IFyM"

#define JWK_N                                                                 \
    "0vx7agoebGcQSuuPiLJXZptN9nndrQmbXEps2aiAFbWhM78LhWx4cbbfAAtVT86zwu1RK7aP"\
    "FFxuhDR1L6tSoc_BJECPebWKRXjBZCiFV4n3oknjhMstn64tZ_2W-5JsGY4Hc5n9yBXArwl9"\
    "3lqt7_RN5w6Cf0h4QyQ5v-65YGjQR0_FDW2QvzqY368QQMicAtaSqzs8KJZgnYb9c7d0zgdA"\
    "ZHzu6qMQvRL5hajrn1n91CbOpbISD08qNLyrdkt-bFTWhAI4vMQFh6WeZu0fM4lFd2NcRwr3"\
    "XPksINHaQ-G_xBniIqbw0Ls1jF44-csFCur-kEgU8awapJzKnqDKgw"

#define JWK_PRINT   "NzbLsXh8uDCcd-6MNwXF4W_7noWXFZAfHkxZsRGC9Xs"


/* Members of a JWK set. */

#define JWK_RS   "{\"kty\":\"RSA\",\"n\":\"" RS_N "\",\"e\":\"AQAB\"}"
#define JWK_ES                                                                \
    "{\"kty\":\"EC\",\"crv\":\"P-256\",\"x\":\"" ES_X "\",\"y\":\"" ES_Y "\"}"
#define JWK_ED   "{\"kty\":\"OKP\",\"crv\":\"Ed25519\",\"x\":\"" ED_X "\"}"
#define JWKS(members)  "{\"keys\":[" members "]}"


#endif /* _XET_TEST_KEYS_H_INCLUDED_ */
