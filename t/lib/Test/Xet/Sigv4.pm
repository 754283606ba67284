package Test::Xet::Sigv4;

# Copyright (C) the ngx_http_xet_module authors

# Implements AWS Signature Version 4 for S3 requests, and shares no code with
# the implementation under test.  Tests use it to send requests that our client
# never sends.
#
#     my $r = sign({ method => 'GET', host => '127.0.0.1:9000',
#         path => "/bucket/a b", query => { partNumber => 1 },
#         headers => { Range => 'bytes=0-9' }, body => '',
#         key => 'AKIA...', secret => '...', region => 'us-east-1' });
#
#     Test::Xet::HTTP->request($port, 'GET', $r->{target}, $r->{headers});
#
# presign() takes the same arguments and expires => seconds.  Its target
# contains the whole signature; its headers are the signed headers.  Further
# arguments of both functions:
#
#     time     time of the signature, seconds since 1970; by default now
#     token    session token
#     payload  value of x-amz-content-sha256; by default the body's hash, in
#              a URL UNSIGNED-PAYLOAD; undef sends no such header
#     loose    [ names ] of headers that are sent but not signed

use warnings;
use strict;

use parent qw/ Exporter /;

use Digest::SHA qw/ hmac_sha256 hmac_sha256_hex sha256_hex /;
use POSIX qw/ strftime /;

our @EXPORT = qw/ presign s3_encode sign /;

my $algorithm = 'AWS4-HMAC-SHA256';

sub sign {
	my ($o) = @_;

	my %headers = %{ $o->{headers} || {} };
	my $date = date($o);
	my $payload = exists $o->{payload} ? $o->{payload}
		: sha256_hex($o->{body} // '');

	$headers{Host} //= $o->{host};
	$headers{'x-amz-date'} //= $date;
	$headers{'x-amz-security-token'} = $o->{token} if $o->{token};
	$headers{'x-amz-content-sha256'} = $payload if defined $payload;

	my $signed = signed_headers($o, %headers);
	my $query = query_string($o->{query});

	$headers{Authorization} = "$algorithm Credential=$o->{key}/"
		. scope($o, $date) . ', SignedHeaders='
		. join(';', sort keys %$signed) . ', Signature='
		. signature($o, $date, $query, $signed, $payload // '');

	return { headers => \%headers,
		target => s3_encode($o->{path}, 1)
			. ($query ne '' ? "?$query" : '') };
}

sub presign {
	my ($o) = @_;

	my %headers = (Host => $o->{host}, %{ $o->{headers} || {} });
	my $date = date($o);
	my $signed = signed_headers($o, %headers);

	my $query = query_string({
		%{ $o->{query} || {} },
		'X-Amz-Algorithm' => $algorithm,
		'X-Amz-Credential' => "$o->{key}/" . scope($o, $date),
		'X-Amz-Date' => $date,
		'X-Amz-Expires' => $o->{expires} // 300,
		'X-Amz-SignedHeaders' => join(';', sort keys %$signed),
		$o->{token} ? ('X-Amz-Security-Token' => $o->{token}) : ()
	});

	my $signature = signature($o, $date, $query, $signed,
		$o->{payload} // 'UNSIGNED-PAYLOAD');

	return { headers => \%headers, target => s3_encode($o->{path}, 1)
		. "?$query&X-Amz-Signature=$signature" };
}

sub date {
	my ($o) = @_;

	return strftime('%Y%m%dT%H%M%SZ', gmtime($o->{time} // time()));
}

sub scope {
	my ($o, $date) = @_;

	return substr($date, 0, 8) . "/$o->{region}/s3/aws4_request";
}

# Returns the headers to sign: names in lower case.  Headers that are
# listed in $o->{loose} are sent, but not signed.

sub signed_headers {
	my ($o, %headers) = @_;

	my %loose = map { lc($_) => 1 } @{ $o->{loose} || [] };

	return { map { lc($_) => $headers{$_} }
		grep { !$loose{lc($_)} } keys %headers };
}

sub query_string {
	my ($query) = @_;

	return join('&', map { s3_encode($_) . '='
		. s3_encode($query->{$_} // '') } sort keys %{ $query || {} });
}

# Percent-encodes bytes; in a path a slash stays unchanged.

sub s3_encode {
	my ($text, $path) = @_;

	utf8::encode($text) if utf8::is_utf8($text);

	my $safe = $path ? qr!([^A-Za-z0-9\-_.~/])! : qr!([^A-Za-z0-9\-_.~])!;

	$text =~ s/$safe/sprintf('%%%02X', ord($1))/ge;

	return $text;
}

sub signature {
	my ($o, $date, $query, $signed, $payload) = @_;

	my @names = sort keys %$signed;

	my $request = join("\n", $o->{method}, s3_encode($o->{path}, 1),
		$query, map({ "$_:$signed->{$_}" } @names), '',
		join(';', @names), $payload);

	my $key = "AWS4$o->{secret}";

	$key = hmac_sha256($_, $key) for split('/', scope($o, $date));

	return hmac_sha256_hex(join("\n", $algorithm, $date,
		scope($o, $date), sha256_hex($request)), $key);
}

1;
