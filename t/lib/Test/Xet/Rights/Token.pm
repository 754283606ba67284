package Test::Xet::Rights::Token;

# Copyright (C) the ngx_http_xet_module authors

# Makes the Authorization header of a caller in t/rights/expect.def.  The token
# is one that a service would issue, or one that an attacker would forge.
#
#     my $maker = Test::Xet::Rights::Token->new($dir, iss => 'hub');
#
#     $maker->header(%caller);    undef: no header
#
# The keys are DIR/token.key, url.key and dedup.key.  The option "public" names
# a private key that signs the tokens; the server has its public key.

use warnings;
use strict;

use Digest::SHA qw/ hmac_sha256 /;
use JSON::PP ();
use MIME::Base64 qw/ encode_base64 encode_base64url /;

use Test::Xet::Compact;
use Test::Xet::Process qw/ run_command slurp spew /;

my $json = JSON::PP->new()->canonical();

sub new {
	my ($class, $dir, %o) = @_;

	my %secrets = (wrong => '77' x 32);

	# the secret may follow a purpose and an id

	for my $name (qw/ token url dedup /) {
		my $text = slurp("$dir/$name.key", 1) // '';

		($secrets{$name}) = $text =~ /([0-9a-f]{64})/;
		$secrets{kid} //= $1
			if $name eq 'token'
				&& $text =~ /^(?:token:)?([^:\s]+):/;
	}

	return bless { dir => $dir, secrets => \%secrets, %o }, $class;
}

sub header {
	my ($self, %c) = @_;

	return $c{raw} =~ s/_/ /r if defined $c{raw};
	return undef unless grep { defined $c{$_} } qw/ scope repo token /;

	my $token = $c{token} // $self->token(%c);

	return "Bearer hf_$token" if ($c{as} // '') eq 'hf';
	return 'Basic ' . encode_base64("any:$token", '') if $c{as};
	return "Bearer $token";
}

# Returns the claims of a token of any issuer.

sub claims {
	my ($token) = @_;

	return Test::Xet::Compact::claims($token) if $token =~ /^xet1/;

	my (undef, $body) = split(/\./, $token);

	return $json->decode(MIME::Base64::decode_base64url($body));
}

sub token {
	my ($self, %c) = @_;

	my %claims = (exp => time() + ($c{exp} // 3600),
		scope => $c{scope} // '');

	$claims{nbf} = time() + $c{nbf} if defined $c{nbf};
	$claims{iss} = $c{iss} // $self->{iss};
	$claims{aud} = $c{aud} // $self->{aud};
	$claims{$_} = $c{$_} for qw/ sub repo /;

	delete @claims{ grep { !defined $claims{$_} } keys %claims };

	my $key = $c{key} // 'token';
	my $alg = $c{alg} // '';
	my $text = part({ alg => $alg eq 'none' ? 'none'
			: $self->{public} && $key eq 'token' && $alg eq ''
				? 'EdDSA' : 'HS256',
		typ => 'JWT', map { defined ? (kid => $_) : () } $c{kid}
			// ($self->{public} ? undef : $self->{secrets}{kid}) })
		. '.' . part(\%claims);

	return "$text." if $alg eq 'none';

	return spoil("$text." . encode_base64url(
		$self->signature($text, $key, $alg)), $c{spoil} // '');
}

sub part {
	return encode_base64url($json->encode($_[0]));
}

sub signature {
	my ($self, $text, $key, $alg) = @_;

	return hmac_sha256($text, slurp("$self->{public}.pub"))
		if $alg eq 'public';

	return hmac_sha256($text, pack('H*', $self->{secrets}{$key}))
		unless $self->{public} && $key eq 'token';

	spew("$self->{dir}/signed", $text);

	my ($status, $out) = run_command([ qw/ openssl pkeyutl -sign -rawin
		-inkey /, $self->{public}, '-in', "$self->{dir}/signed" ]);

	die "openssl: $out\n" if $status;

	return $out;
}

# Damages a token.

sub spoil {
	my ($token, $how) = @_;

	return substr($token, 0, -4) if $how eq 'cut';
	return $token =~ s/\.[^.]*\z/./r if $how eq 'header';
	return $token if $how eq '';

	# another subject, with the signature for the first one

	my ($head, $body, $mac) = split(/\./, $token);
	my $claims = claims($token);

	$claims->{sub} .= 'x';

	return join('.', $head, part($claims), $mac);
}

1;
