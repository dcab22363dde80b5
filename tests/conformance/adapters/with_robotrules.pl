use strict;
use warnings;
use JSON::PP;
use MIME::Base64;
use WWW::RobotRules;

if (@ARGV) { print "$WWW::RobotRules::VERSION\n"; exit }
$| = 1;
while (my $line = <STDIN>) {
    my $case = decode_json($line);
    my @tokens = @{ $case->{tokens} };
    my $answer = {};
    if (@tokens == 1) {
        my $rules = WWW::RobotRules->new($tokens[0]);
        $rules->parse(URI->new_abs("/robots.txt", $case->{url}), decode_base64($case->{body}));
        $answer = { allowed => $rules->allowed($case->{url}) ? JSON::PP::true : JSON::PP::false };
    }
    print encode_json($answer), "\n";
}
