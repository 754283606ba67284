
/*
 * Tests the parser of XML from S3 stores: responses of AWS, Garage, moto and
 * s3proxy; lists; and invalid documents: with a DTD, too deep, too long, or
 * truncated at any byte.
 */


#include "xet_test.h"
#include "xet_s3xml.h"


#define HEAD  "<?xml version=\"1.0\" encoding=\"UTF-8\"?>\n"
#define NS    " xmlns=\"http://s3.amazonaws.com/doc/2006-03-01/\""


static xet_s3xml_answer_t  answer;


/* Parses a block of the exact length, so that ASan detects a read past it. */

static xet_status_t
test_answer_n(const char *text, size_t len)
{
    uint8_t       *copy;
    xet_status_t   rc;

    copy = malloc(len + !len);
    memcpy(copy, text, len);
    rc = xet_s3xml_answer(&answer, copy, len);
    free(copy);

    return rc;
}


static xet_status_t
test_answer(const char *text)
{
    return test_answer_n(text, strlen(text));
}


static void
test_answers(void)
{
    size_t        i, len;
    unsigned      n;

    static const char  begun[] =
        HEAD "<InitiateMultipartUploadResult" NS "><Bucket>b</Bucket>"
        "<Key>k</Key><UploadId>a&amp;b</UploadId>"
        "</InitiateMultipartUploadResult>";

    xet_ok(test_answer(HEAD "<Error><Code>NoSuchKey</Code>\n <Message>The "
                       "&lt;key&gt; is not &#x67;one</Message><Resource>/k"
                       "</Resource></Error>") == XET_OK
           && answer.failed && strcmp(answer.error.code, "NoSuchKey") == 0
           && strcmp(answer.error.message, "The <key> is not gone") == 0
           && answer.error.region[0] == '\0', "an error");

    xet_ok(test_answer("<Error><Code>AuthorizationHeaderMalformed</Code>"
                       "<Region>eu-west-3</Region></Error>") == XET_OK
           && strcmp(answer.error.region, "eu-west-3") == 0,
           "the region that a bucket is in");

    xet_ok(test_answer(begun) == XET_OK && !answer.failed
           && strcmp(answer.upload, "a&b") == 0, "the begin of an upload");

    xet_ok(test_answer("\r\n \t" HEAD "<CompleteMultipartUploadResult" NS ">"
                       "<Location>http://h</Location><ETag>\"abc-2\"</ETag>"
                       "</CompleteMultipartUploadResult>") == XET_OK
           && strcmp(answer.etag, "\"abc-2\"") == 0,
           "the end of an upload, with the blanks that say \"wait\"");

    xet_ok(test_answer("<s:CopyObjectResult xmlns:s=\"x\"><s:ETag><![CDATA["
                       "\"c\"]]></s:ETag></s:CopyObjectResult>") == XET_OK
           && strcmp(answer.etag, "\"c\"") == 0,
           "a copy, with a prefix and CDATA");

    xet_ok(test_answer(HEAD "\n<Error><Code>InternalError</Code></Error>")
           == XET_OK && answer.failed, "an error that came with a 200");

    xet_ok(test_answer("<Error><Code></Code></Error>") == XET_BODY_SYNTAX
           && test_answer("<Error/>") == XET_BODY_SYNTAX
           && test_answer("<html><body>Error</body></html>")
              == XET_BODY_SYNTAX
           && test_answer("<A><Error><Code>x</Code></Error></A>")
              == XET_BODY_SYNTAX
           && test_answer("") == XET_BODY_SYNTAX
           && test_answer("{\"Code\": 1}") == XET_BODY_SYNTAX,
           "other documents are none");

    len = sizeof(begun) - 1;
    n = 0;

    for (i = 0; i < len; i++) {
        n += (test_answer_n(begun, i) == XET_BODY_SYNTAX);
    }

    xet_is_u64(n, len, "one that is cut, anywhere, is malformed");
}


static void
test_limits(void)
{
    char    *text, *p;
    size_t   i;

    text = malloc(32 * 1024);

    p = text + sprintf(text, "<Error><Code>X</Code><Message>");
    memset(p, 'm', XET_S3XML_VALUE_MAX);
    strcpy(p + XET_S3XML_VALUE_MAX, "</Message></Error>");

    xet_ok(test_answer(text) == XET_OK
           && strlen(answer.error.message)
              == sizeof(answer.error.message) - 1,
           "a long message is cut");

    memset(p, 'm', XET_S3XML_VALUE_MAX + 1);
    strcpy(p + XET_S3XML_VALUE_MAX + 1, "</Message></Error>");

    xet_ok(test_answer(text) == XET_BODY_SYNTAX, "one byte more is too long");

    p = text + sprintf(text, "<InitiateMultipartUploadResult><UploadId>");
    memset(p, 'u', XET_S3XML_ID_MAX - 1);
    strcpy(p + XET_S3XML_ID_MAX - 1,
           "</UploadId></InitiateMultipartUploadResult>");

    xet_ok(test_answer(text) == XET_OK
           && strlen(answer.upload) == XET_S3XML_ID_MAX - 1, "a long id");

    memset(p, 'u', XET_S3XML_ID_MAX);
    strcpy(p + XET_S3XML_ID_MAX,
           "</UploadId></InitiateMultipartUploadResult>");

    xet_ok(test_answer(text) == XET_BODY_SYNTAX,
           "an id that is too long is not cut");

    p = text + sprintf(text, "<Error><Code>X</Code>");

    for (i = 1; i < XET_S3XML_DEPTH; i++) {
        p += sprintf(p, "<a>");
    }

    for (i = 1; i < XET_S3XML_DEPTH; i++) {
        p += sprintf(p, "</a>");
    }

    strcpy(p, "</Error>");

    xet_ok(test_answer(text) == XET_OK, "as deep as can be");

    p = text + sprintf(text, "<Error><Code>X</Code>");

    for (i = 0; i < XET_S3XML_DEPTH; i++) {
        p += sprintf(p, "<a>");
    }

    for (i = 0; i < XET_S3XML_DEPTH; i++) {
        p += sprintf(p, "</a>");
    }

    strcpy(p, "</Error>");

    xet_ok(test_answer(text) == XET_BODY_SYNTAX, "one level too deep");

    p = text + sprintf(text, "<Error><Code>X</Code><");
    memset(p, 'n', XET_S3XML_PATH_MAX);
    strcpy(p + XET_S3XML_PATH_MAX, "/></Error>");

    xet_ok(test_answer(text) == XET_BODY_SYNTAX, "a name that is too long");

    free(text);

    xet_ok(test_answer("<:/>") == XET_BODY_SYNTAX
           && test_answer("<Error><a:/><Code>x</Code></Error>")
              == XET_BODY_SYNTAX, "names that end with their prefix");

    xet_ok(test_answer("<!DOCTYPE Error [<!ENTITY a \"aaaa\">]>"
                       "<Error><Code>&a;&a;</Code></Error>")
           == XET_BODY_SYNTAX
           && test_answer("<!DOCTYPE Error SYSTEM \"file:///etc/passwd\">"
                          "<Error><Code>x</Code></Error>")
              == XET_BODY_SYNTAX
           && test_answer("<!DOCTYPE Error><Error><Code>x</Code></Error>")
              == XET_BODY_SYNTAX, "no DTD, whatever is in it");

    xet_ok(test_answer("<Error><Code>&a;</Code></Error>") == XET_BODY_SYNTAX
           && test_answer("<Error><Code>\xff</Code></Error>")
              == XET_BODY_SYNTAX
           && test_answer("<Error><Code>x</Code></Error><Error/>")
              == XET_BODY_SYNTAX, "what is no XML");
}


/* The list items as text: "key=size@time " or "key#upload@time ". */

static char              test_text[512];
static xet_s3xml_list_t  list;


static xet_status_t
test_item(void *data, const xet_s3xml_item_t *item)
{
    size_t  len;

    len = strlen(test_text);

    if (item->upload[0]) {
        snprintf(test_text + len, sizeof(test_text) - len, "%s#%s@%s ",
                 item->key, item->upload, item->time);

    } else {
        snprintf(test_text + len, sizeof(test_text) - len, "%s=%llu@%s ",
                 item->key, (unsigned long long) item->size, item->time);
    }

    return (data && --*(int *) data == 0) ? XET_DONE : XET_OK;
}


static xet_status_t
test_list_n(const char *text, int *most)
{
    test_text[0] = '\0';

    return xet_s3xml_list(&list, (const uint8_t *) text, strlen(text),
                          test_item, most);
}


static xet_status_t
test_list(const char *text)
{
    return test_list_n(text, NULL);
}


static void
test_lists(void)
{
    int  most;

    static const char  two[] =
        HEAD "<ListBucketResult" NS "><Name>b</Name><Prefix>p/</Prefix>"
        "<KeyCount>2</KeyCount><MaxKeys>2</MaxKeys>"
        "<Contents><Key>p/a%20b</Key><LastModified>2026-11-23T08:12:06.000Z"
        "</LastModified><ETag>&quot;e&quot;</ETag><Size>18446744073709551615"
        "</Size><Owner><ID>x</ID></Owner></Contents>"
        "<Contents><Key>p/c+d%2B</Key><Size>0</Size></Contents>"
        "%s<IsTruncated>true</IsTruncated></ListBucketResult>";

    char  text[2048];

    snprintf(text, sizeof(text), "%.*s%s", (int) (strstr(two, "%s") - two),
             two, strstr(two, "%s") + 2);

    xet_ok(test_list(text) == XET_OK && list.more
           && strcmp(test_text, "p/a%20b=18446744073709551615@2026-11-23T08:12"
                     ":06.000Z p/c+d%2B=0@ ") == 0, "a list of objects");

    snprintf(text, sizeof(text), "%.*s<EncodingType>url</EncodingType>%s",
             (int) (strstr(two, "%s") - two), two, strstr(two, "%s") + 2);

    xet_ok(test_list(text) == XET_OK
           && strcmp(test_text, "p/a b=18446744073709551615@2026-11-23T08:12"
                     ":06.000Z p/c d+=0@ ") == 0,
           "with keys in URL encoding, which is said behind them");

    most = 1;

    xet_ok(test_list_n(text, &most) == XET_DONE
           && strncmp(test_text, "p/a b=", 6) == 0
           && strstr(test_text, "p/c") == NULL, "the reader may stop");

    xet_ok(test_list("<ListBucketResult><IsTruncated>false</IsTruncated>"
                     "</ListBucketResult>") == XET_OK
           && !list.more && test_text[0] == '\0', "an empty list");

    xet_ok(test_list("<ListMultipartUploadsResult><NextKeyMarker>n%2F"
                     "</NextKeyMarker><NextUploadIdMarker>m</NextUploadIdMarke"
                     "r><EncodingType>url</EncodingType><IsTruncated>true"
                     "</IsTruncated><Upload><Key>k%2f1</Key><UploadId>u%2F"
                     "</UploadId><Initiated>2026-01-02T03:04:05Z</Initiated>"
                     "</Upload></ListMultipartUploadsResult>") == XET_OK
           && list.more && strcmp(list.key, "n/") == 0
           && strcmp(list.upload, "m") == 0
           && strcmp(test_text, "k/1#u%2F@2026-01-02T03:04:05Z ") == 0,
           "a list of uploads; ids are not encoded");

    xet_ok(test_list("<ListBucketResult><Contents><Size>1</Size></Contents>"
                     "</ListBucketResult>") == XET_BODY_SYNTAX
           && test_list("<ListBucketResult><Contents><Key>k</Key><Size>-1"
                        "</Size></Contents></ListBucketResult>")
              == XET_BODY_SYNTAX
           && test_list("<ListBucketResult><Contents><Key>k</Key><Size>"
                        "18446744073709551616</Size></Contents>"
                        "</ListBucketResult>") == XET_BODY_SYNTAX
           && test_list("<ListBucketResult><EncodingType>url</EncodingType>"
                        "<Contents><Key>%0</Key></Contents>"
                        "</ListBucketResult>") == XET_BODY_SYNTAX
           && test_list("<ListBucketResult><EncodingType>url</EncodingType>"
                        "<Contents><Key>a%00b</Key></Contents>"
                        "</ListBucketResult>") == XET_BODY_SYNTAX,
           "items that can't be");

    xet_ok(test_list("<Error><Code>x</Code></Error>") == XET_BODY_SYNTAX
           && test_list("<ListBucketResultX/>") == XET_BODY_SYNTAX
           && test_list("<X><ListBucketResult/></X>") == XET_BODY_SYNTAX,
           "what is no list");
}


int
main(void)
{
    test_answers();
    test_limits();
    test_lists();

    return xet_done();
}
