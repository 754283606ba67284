package Test::Xet::Compact;

# Copyright (C) the ngx_http_xet_module authors

# Makes and reads compact tokens without the server's code.  Their form is in
# the first lines of src/core/access/xet_token_compact.c.
#
#     my $token = Test::Xet::Compact::token({ scope => 'read', exp => $time },
#         'h1', sub { hmac_sha256($_[0], $secret) });
#     my $claims = Test::Xet::Compact::claims($token);

use warnings;
use strict;

use Digest::SHA qw/ sha256 /;

my @digits = (0 .. 9, 'A' .. 'Z', 'a' .. 'z');
my %value = map { $digits[$_] => $_ } 0 .. $#digits;
my @len = (0, 2, 3, 5, 6, 7, 9, 10, 11);
my @scopes = qw/ read write delete admin /;

# Returns a token.  The claims may have "head", a string of two bytes, instead
# of the correct flags, and "more", bytes before the signature.

sub token {
	my ($claims, $id, $sign) = @_;

	my $body = body($claims, $id);

	return 'xet1' . encode($body . $sign->("xet token 1\n$body"));
}

sub body {
	my ($c, $id) = @_;

	my ($scope) = grep { $scopes[$_] eq ($c->{scope} // 'read') } 0 .. 3;
	my ($has, $bit, $text) = (0, 1, number($c->{exp}));

	for my $name (qw/ iat nbf iss aud sub repo /) {
		if (defined(my $v = $c->{$name})) {
			$has |= $bit;
			$text .= $name =~ /^(iat|nbf)/ ? number($v)
				: $name =~ /^(iss|aud)/
					? substr(sha256($v), 0, 8)
				: $name eq 'sub' ? chr(length $v) . $v : $v;
		}

		$bit *= 2;
	}

	return substr(sha256($id), 0, 4) . ($c->{head}
		// chr($scope + ($c->{contents} ? 4 : 0)) . chr($has))
		. $text . ($c->{more} // '');
}

# Returns the claims of a token with an HMAC; iss and aud are 8 bytes.

sub claims {
	my ($token) = @_;

	my $text = decode(substr($token, 4));
	my (undef, $first, $has, $time, $rest)
		= unpack('a4 C C a7 a*', substr($text, 0, -32));
	my %c = (scope => $scopes[$first & 3], exp => unpack('Q>', "\0$time"));
	my $bit = 1;

	$c{contents} = 1 if $first & 4;

	for my $name (qw/ iat nbf iss aud sub repo /) {
		my $n = $name =~ /^(iat|nbf)/ ? 7 : $name =~ /^(iss|aud)/ ? 8
			: $name eq 'sub' ? 'C/' : '*';

		($c{$name}, $rest) = unpack($n eq 'C/' ? 'C/a a*'
			: $n eq '*' ? 'a*' : "a$n a*", $rest) if $has & $bit;
		$bit *= 2;
	}

	$_ = unpack('Q>', "\0$_") for grep { defined } @c{ grep { $c{$_} }
		qw/ iat nbf / };

	return \%c;
}

sub number { return substr(pack('Q>', $_[0]), 1) }

sub encode {
	my ($bytes) = @_;

	my $text = '';

	for my $block (unpack('(a8)*', $bytes)) {
		my $n = unpack('Q>', "\0" x (8 - length $block) . $block);
		my $part = '';

		for (1 .. $len[length $block]) {
			$part = $digits[$n % 62] . $part;
			$n = div62($n);
		}

		$text .= $part;
	}

	return $text;
}

# Perl's "/" is a floating point division.

sub div62 {
	my ($n) = @_;

	return ($n - $n % 62) / 62 if $n < 2 ** 52;

	my ($high, $low) = ($n >> 32, $n & 0xffffffff);
	my $rest = $high % 62;

	$low += $rest << 32;

	return (($high - $rest) / 62 << 32) + ($low - $low % 62) / 62;
}

sub decode {
	my ($text) = @_;

	my $bytes = '';

	for my $part (unpack('(a11)*', $text)) {
		my ($size) = grep { $len[$_] == length $part } 1 .. 8;
		my $n = 0;

		$n = $n * 62 + $value{$_} for split(//, $part);
		$bytes .= substr(pack('Q>', $n), -$size);
	}

	return $bytes;
}

1;
